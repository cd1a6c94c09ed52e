// A library that uses variables of another file, at the addresses that the dynamic linker writes.
struct settings { int mode, verbose; long limit; };
extern struct settings settings;
extern long refused;

long allowed(long wanted)
{
    if (wanted > settings.limit) {    /* settings.limit */
        refused++;                    /* long. */
        return settings.mode;         /* settings.mode */
    }
    return wanted;
}
