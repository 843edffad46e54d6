/* fake_nvml: what the scripted management library says. */
#ifndef ASSAY_TESTS_FAKE_NVML_H
#define ASSAY_TESTS_FAKE_NVML_H

enum { FAKE_NVML_MOST = 100 };

struct fake_nvml {
	int init_rc, handle_rc, list_rc; /* 0: success */
	unsigned long long throttle;
	unsigned compute[FAKE_NVML_MOST], n_compute, graphics[FAKE_NVML_MOST], n_graphics;
	int inits, shutdowns;
};

#endif
