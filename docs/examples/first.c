#include <statctr.h>
#include <stdio.h>

int main(void)
{
    static statctr_t packets; /* zeroed: not initialised yet */
    int error = statctr_init(&packets, 0);
    if (error) {
        fprintf(stderr, "%s\n", statctr_strerror(error));
        return 1;
    }
    for (int i = 0; i < 1000000; i++)
        statctr_inc(&packets); /* inline: the same instructions as in Rust */
    printf("%lu\n", statctr_read(&packets));
    statctr_cleanup(&packets);
    return 0;
}
