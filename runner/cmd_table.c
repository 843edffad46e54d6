#include "cmd.h"

#include <stddef.h>

extern const struct cmd cmd_run, cmd_check, cmd_list, cmd_explain, cmd_show, cmd_rejudge, cmd_report, cmd_tables,
	cmd_diff, cmd_ab, cmd_baseline, cmd_history, cmd_merge, cmd_bisect, cmd_selftest, cmd_new_kernel, cmd_schema;

const struct cmd *const cmd_table[] = {
	&cmd_run,    &cmd_check,  &cmd_list,     &cmd_explain,    &cmd_show,     &cmd_rejudge,
	&cmd_report, &cmd_tables, &cmd_diff,     &cmd_ab,         &cmd_baseline, &cmd_history,
	&cmd_merge,  &cmd_bisect, &cmd_selftest, &cmd_new_kernel, &cmd_schema,   NULL,
};
