// A C++ program of a user of libstatctr, by the classes of statctr.hpp.
#include <cstdio>
#include <statctr.hpp>
#include <thread>
#include <vector>

int main()
{
    constexpr unsigned threads = 4, updates = 1000;
    statctr::counter packets;
    std::vector<std::thread> workers;
    for (unsigned i = 0; i < threads; i++)
        workers.emplace_back([&] {
            for (unsigned n = 0; n < updates; n++)
                ++packets;
        });
    for (auto &worker : workers)
        worker.join();
    std::printf("%llu packets by C++\n", static_cast<unsigned long long>(packets.read()));
    return packets.read() != threads * updates;
}
