/* offspring: processes that an arm started in the worker and left running. They would load whatever is timed after them. */
#ifndef ASSAY_OFFSPRING_H
#define ASSAY_OFFSPRING_H

/* From now on the children of dead children are this process's too. */
void offspring_adopt(void);
/* Ends all children that live and waits for them; how many there were. Those that had ended already are waited for and not counted. */
int offspring_end(void);

/* Ends the children of this process, adopted ones too, in whose environment `mark` ("NAME=value") stands, and waits for them; how many there
 * were. Whoever else it started or was given is left alone. */
int offspring_end_marked(const char *mark);

#endif
