// Documents that are shared between readers by a count of references and replaced by an editor.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

struct Document {
    std::atomic<std::uint64_t> references{1};
    std::uint64_t version;
    std::uint64_t length;
    std::unique_ptr<std::uint32_t[]> words;
    std::uint64_t reserved[4] = {};

    Document(std::uint64_t v, std::uint64_t n) : version(v), length(n), words(new std::uint32_t[n])
    {
        for (std::uint64_t i = 0; i < n; i++)
            words[i] = static_cast<std::uint32_t>(v * 31 + i * i);
    }
};

static std::atomic<std::uint64_t> freed{0};

static void drop(Document *d)
{
    if (d->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        freed.fetch_add(1, std::memory_order_relaxed);
        delete d;
    }
}

struct alignas(64) Place {
    std::mutex lock;
    Document *current = nullptr;
};

class Library {
public:
    explicit Library(std::size_t n) : places_(n)
    {
        for (std::size_t i = 0; i < n; i++)
            places_[i].current = new Document(i, 32 + i % 32);
    }
    ~Library()
    {
        for (auto &p : places_)
            drop(p.current);
    }
    Document *open(std::size_t i)
    {
        std::lock_guard<std::mutex> hold(places_[i].lock);
        Document *d = places_[i].current;
        d->references.fetch_add(1, std::memory_order_relaxed);
        return d;
    }
    void replace(std::size_t i, Document *with)
    {
        Document *old;
        {
            std::lock_guard<std::mutex> hold(places_[i].lock);
            old = std::exchange(places_[i].current, with);
        }
        drop(old);
    }
    std::size_t size() const { return places_.size(); }

private:
    std::vector<Place> places_;
};

static void reader(Library &library, std::uint64_t n, std::uint32_t seed, std::uint64_t &words)
{
    std::uint64_t seen = 0;
    std::uint32_t x = seed;
    for (std::uint64_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        Document *d = library.open((x >> 8) % library.size());
        std::uint32_t longest = 0;
        for (std::uint64_t k = 0; k < d->length; k++)
            longest = d->words[k] > longest ? d->words[k] : longest;
        seen += d->length + (longest == 1);
        drop(d);
    }
    words = seen;
}

static void editor(Library &library, std::uint64_t n)
{
    std::uint32_t x = 77;
    for (std::uint64_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        std::size_t at = (x >> 8) % library.size();
        library.replace(at, new Document(x, 32 + at % 32));
    }
}

int main(int argc, char **argv)
{
    std::uint64_t n = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 4000;
    std::uint64_t words[2];
    {
        Library library(512);
        std::thread a(reader, std::ref(library), n, 1, std::ref(words[0]));
        std::thread b(reader, std::ref(library), n, 2, std::ref(words[1]));
        std::thread c(editor, std::ref(library), n / 20);
        a.join();
        b.join();
        c.join();
    }
    std::printf("%llu words, %llu documents freed\n", (unsigned long long)(words[0] + words[1]),
                (unsigned long long)freed.load());
    return 0;
}
