// A parallel region of a member function, of which GCC makes a function within it: each line says which fields it
// touches. No OpenMP library is linked.
struct particle {
    double place, speed;
    int bounces;
};
struct world {
    particle *all;
    long count;
    double time;
    void step(double by);
};

extern "C" int omp_get_num_threads() { return 1; }
extern "C" int omp_get_thread_num() { return 0; }
extern "C" void GOMP_parallel(void (*region)(void *), void *data, unsigned, unsigned) { region(data); }

void world::step(double by)
{
#pragma omp parallel for
    for (long i = 0; i < count; i++) {
        particle &one = all[i];
        one.place += one.speed * by; // particle.place particle.speed
        if (one.place > 1)
            one.bounces++; // particle.bounces
    }
}

int main(int argc, char **)
{
    static particle some[64];
    world here = {some, 64, 0};
    here.step(argc);
    return some[1].bounces;
}
