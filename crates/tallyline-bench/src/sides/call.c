/* The update behind a call: what a program pays that reaches the counter through a function of
 * its own or of a library, and not inline. In a file of its own, so that nothing inlines it. */

#include "sides.h"

void tallyline_call_inc(statctr_t *counter)
{
	statctr_inc(counter);
}
