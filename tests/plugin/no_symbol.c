/* Exports nothing that assay looks for. */
int plugin_without_a_kernel(void);

int plugin_without_a_kernel(void)
{
	return 0;
}
