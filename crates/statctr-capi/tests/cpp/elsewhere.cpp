#include "face.hpp"

void count_elsewhere(Counter &counter, statctr_group_t &group)
{
    ++counter;
    --counter;
    count_twice(counter, 3);
    look_up(group, true);
}
