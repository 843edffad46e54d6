/* npy: arrays that NumPy wrote (format 1.0 to 3.0), so that captured activations can be inputs. Read only: little-endian, C order, one
 * plain element type. The file is not trusted. */
#ifndef ASSAY_NPY_H
#define ASSAY_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "assay/adapter.h"
#include "err.h"

struct npy_header {
	char type[8]; /* "f4", "i1", "V1" …: kind and bytes, without the byte order */
	int rank;
	int64_t dim[ASSAY_MAX_RANK];
	size_t data_offset; /* bytes before the data */
	size_t data_bytes;
};

/* Parses the header of a file's first bytes. False with *err: not such a file, cut short, big-endian, Fortran order, … */
bool npy_parse(const void *file, size_t bytes, struct npy_header *out, struct err *err);

/* Whether the file can be read, its header holds together, and it is as long as that says; its data is not read. *err begins with the path. */
bool npy_check(const char *path, struct err *err);

/* Whether the array is of this element type and shape (see npy_read); reads the header only. *err begins with the path. */
bool npy_fits(const char *path, enum assay_dtype dtype, const struct assay_shape *shape, size_t bytes, struct err *err);

/* Reads the data into dst (bytes long, row-major). The element type and the shape must be the file's; bf16 may stand in it as u2 or V2,
 * e4m3 and e5m2 as u1 or V1, for which NumPy has no names. *err begins with the path. */
bool npy_read(const char *path, enum assay_dtype dtype, const struct assay_shape *shape, void *dst, size_t bytes,
	      struct err *err);

#endif
