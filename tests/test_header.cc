// adapter.h compiles as C++17, and its structs can be filled there.
#include "assay/adapter.h"

int main()
{
	assay_kernel k{};
	k.abi = ASSAY_ABI;
	assay_shape s{};
	s.rank = 1;
	s.dim[0] = 7;
	return k.abi == ASSAY_ABI && assay_shape_count(&s) == 7 && assay_dtype_bytes(ASSAY_F64) == 8 ? 0 : 1;
}
