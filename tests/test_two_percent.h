/* test_two_percent: the rule that noise is played against: a margin of 2 %, and all else as a suite has it that says nothing. */
#ifndef ASSAY_TEST_TWO_PERCENT_H
#define ASSAY_TEST_TWO_PERCENT_H

#include "judge.h"

static const struct judge_rule two_percent = {.estimator = EST_PAIRED,
					      .fail = 0.02,
					      .warn = -1,
					      .alpha = 0.025,
					      .min_rounds = 8,
					      .max_rounds = 64,
					      .confirm = CONFIRM_FRESH};

#endif
