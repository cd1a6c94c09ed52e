// Log lines go to a buffer of the thread, with a number of the whole log, and full buffers to one sink.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

struct alignas(64) Sequence {
    std::atomic<std::uint64_t> next{0};
};

class Sink {
public:
    void write(const char *data, std::size_t len)
    {
        std::lock_guard<std::mutex> hold(mutex_);
        for (std::size_t i = 0; i < len; i++)
            hash_ += static_cast<unsigned char>(data[i]);
        bytes_ += len;
        writes_++;
    }
    void report()
    {
        std::lock_guard<std::mutex> hold(mutex_);
        std::printf("%llu bytes in the log, hash %llu\n", (unsigned long long)bytes_, (unsigned long long)hash_);
    }

private:
    std::mutex mutex_;
    std::uint64_t bytes_ = 0;
    std::uint64_t writes_ = 0;
    std::uint64_t hash_ = 0;
};

struct alignas(64) LogBuffer {
    std::uint64_t lines = 0;
    std::uint32_t used = 0;
    std::uint32_t flushes = 0;
    char text[4096 - 16];

    void line(Sink &sink, std::uint64_t number, unsigned thread, std::uint64_t event)
    {
        if (used + 48 > sizeof text)
            flush(sink);
        char *p = text + used;
        p = hex(p, number, 10);
        *p++ = ' ';
        *p++ = static_cast<char>('0' + thread);
        *p++ = ' ';
        p = hex(p, event, 16);
        *p++ = '\n';
        used = static_cast<std::uint32_t>(p - text);
        lines++;
    }
    void flush(Sink &sink)
    {
        sink.write(text, used);
        used = 0;
        flushes++;
    }

private:
    static char *hex(char *p, std::uint64_t v, int digits)
    {
        for (int i = digits - 1; i >= 0; i--)
            *p++ = "0123456789abcdef"[v >> (4 * i) & 15];
        return p;
    }
};

static Sequence sequence;
static Sink sink;
static LogBuffer buffers[3];

static void work(unsigned me, std::uint64_t n)
{
    LogBuffer &log = buffers[me];
    std::uint64_t x = 17 + me;
    for (std::uint64_t i = 0; i < n; i++) {
        for (int k = 0; k < 24; k++)
            x = (x ^ (x >> 31)) * 0x94d049bb133111ebull + k;
        log.line(sink, sequence.next.fetch_add(1, std::memory_order_relaxed), me, x);
    }
    log.flush(sink);
}

int main(int argc, char **argv)
{
    std::uint64_t n = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1500;
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 3; i++)
        threads.emplace_back(work, i, n);
    for (auto &t : threads)
        t.join();
    sink.report();
    return 0;
}
