// Document tree of an editor: fragments of text are shared between versions by counting references. Two clients edit
// documents of their own, which are made of common fragments.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>
#include <utility>
#include <vector>

namespace editor {

class alignas(64) Fragment {
public:
    static Fragment *make(std::uint32_t seed)
    {
        return new Fragment(seed);
    }

    void retain() { references_.fetch_add(1, std::memory_order_relaxed); }

    void release()
    {
        if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
            delete this;
    }

    std::uint32_t length() const { return length_; }

    std::uint64_t hash(std::uint64_t h) const
    {
        for (std::uint32_t i = 0; i < length_; i++)
            h = (h ^ static_cast<unsigned char>(text_[i])) * 1099511628211ull;
        return h;
    }

private:
    explicit Fragment(std::uint32_t seed) : references_(1), length_(12 + seed % 32)
    {
        std::uint32_t x = seed * 2654435761u + 1;
        for (std::uint32_t i = 0; i < length_; i++) {
            x = x * 1664525u + 1013904223u;
            text_[i] = static_cast<char>('a' + (x >> 24) % 26);
        }
    }
    ~Fragment() = default;

    std::atomic<std::uint32_t> references_;
    std::uint32_t length_;
    char text_[48];
};

class Reference {
public:
    Reference() = default;
    explicit Reference(Fragment *owned) : fragment_(owned) {}
    Reference(const Reference &o) : fragment_(o.fragment_)
    {
        if (fragment_)
            fragment_->retain();
    }
    Reference(Reference &&o) noexcept : fragment_(std::exchange(o.fragment_, nullptr)) {}
    Reference &operator=(Reference o) noexcept
    {
        std::swap(fragment_, o.fragment_);
        return *this;
    }
    ~Reference()
    {
        if (fragment_)
            fragment_->release();
    }

    const Fragment *operator->() const { return fragment_; }

private:
    Fragment *fragment_ = nullptr;
};

using Library = std::vector<Reference>;

Library makeLibrary(std::uint32_t count)
{
    Library library;
    library.reserve(count);
    for (std::uint32_t i = 0; i < count; i++)
        library.emplace_back(Fragment::make(i));
    return library;
}

// A version of a document. Copies share the fragments.
class Document {
public:
    explicit Document(std::size_t pieces) : pieces_(pieces) {}

    void replace(std::size_t at, const Reference &r) { pieces_[at] = r; }

    std::uint64_t hash() const
    {
        std::uint64_t h = 14695981039346656037ull;
        for (const auto &p : pieces_)
            h = p->hash(h);
        return h;
    }

    std::uint64_t length() const
    {
        std::uint64_t n = 0;
        for (const auto &p : pieces_)
            n += p->length();
        return n;
    }

    std::size_t pieces() const { return pieces_.size(); }

private:
    std::vector<Reference> pieces_;
};

class Client {
public:
    Client(const Library &library, std::uint64_t seed) : library_(library), state_(seed) {}

    std::uint64_t edit(std::uint32_t edits)
    {
        Document current(24);
        for (std::size_t i = 0; i < current.pieces(); i++)
            current.replace(i, pick());
        std::vector<Document> undo(4, current);
        std::uint64_t digest = 0;
        for (std::uint32_t n = 0; n < edits; n++) {
            if (n % 16 == 0)
                undo[n / 16 % undo.size()] = current;
            current.replace(random() % current.pieces(), pick());
            digest = digest * 31 + current.hash();
            if (random() % 64 == 0)
                current = undo[random() % undo.size()];
        }
        return digest ^ current.length();
    }

private:
    std::uint32_t random()
    {
        state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
        return static_cast<std::uint32_t>(state_ >> 33);
    }

    const Reference &pick() { return library_[random() % library_.size()]; }

    const Library &library_;
    std::uint64_t state_;
};

} // namespace editor

int main(int argc, char **argv)
{
    const std::uint32_t edits = argc > 1 ? static_cast<std::uint32_t>(std::atoi(argv[1])) : 60000;
    std::uint64_t digests[2];
    {
        const editor::Library library = editor::makeLibrary(3000);
        auto work = [&library, edits](std::uint64_t seed, std::uint64_t *out) {
            editor::Client client(library, seed);
            *out = client.edit(edits);
        };
        std::thread a(work, 1, &digests[0]);
        std::thread b(work, 2, &digests[1]);
        a.join();
        b.join();
    }
    std::printf("%u edits each, digests %016llx %016llx\n", edits, static_cast<unsigned long long>(digests[0]),
                static_cast<unsigned long long>(digests[1]));
    return 0;
}
