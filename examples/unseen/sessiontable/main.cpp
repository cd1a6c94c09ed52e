// Session table of a web front end: request threads look sessions up by their tokens and see whether they are still valid.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace web {

constexpr std::size_t kStripe = 64;

struct Address {
    std::uint8_t bytes[16];
    std::uint16_t port;
    std::uint16_t family;
};

struct Preferences {
    char language[8];
    char theme[16];
    std::uint32_t pageSize;
    std::uint32_t flags;
};

struct alignas(kStripe) Session {
    char user[40];
    std::uint64_t created;
    std::uint64_t secret;
    Address peer;
    char agent[88];
    Preferences preferences;
    std::uint32_t expires;
    std::uint32_t failures;
    char lastPage[72];
    std::uint32_t roles;
    std::uint32_t devices;
    char referrer[56];
    std::uint32_t scopes;
    std::uint32_t locale;
    std::uint64_t bytesSent;
};

// The sessions are found by the slot that their token names; the rest of the token has to agree.
class SessionTable {
public:
    explicit SessionTable(std::size_t sessions) : capacity_(sessions)
    {
        pool_ = static_cast<Session *>(std::aligned_alloc(kStripe, sessions * sizeof(Session)));
        if (!pool_)
            throw std::bad_alloc();
    }

    ~SessionTable() { std::free(pool_); }
    SessionTable(const SessionTable &) = delete;
    SessionTable &operator=(const SessionTable &) = delete;

    std::uint64_t open(std::uint64_t secret, std::uint32_t expires, std::uint32_t roles)
    {
        Session *s = new (pool_ + used_) Session{};
        std::snprintf(s->user, sizeof s->user, "user-%zu", used_);
        std::memcpy(s->preferences.language, "en", 3);
        s->preferences.pageSize = 25;
        s->peer.port = static_cast<std::uint16_t>(secret);
        s->secret = secret >> kSlotBits;
        s->created = expires - 900;
        s->expires = expires;
        s->roles = roles;
        s->scopes = ~(roles >> 1);
        return s->secret << kSlotBits | used_++;
    }

    // Roles of a valid session, 0 without one.
    __attribute__((noinline)) std::uint32_t authorize(std::uint64_t token, std::uint32_t now) const
    {
        const std::size_t slot = token & ((std::uint64_t{1} << kSlotBits) - 1);
        if (slot >= capacity_)
            return 0;
        const Session &s = pool_[slot];
        const bool valid = (s.secret == token >> kSlotBits) & (s.expires > now);
        return valid ? s.roles & s.scopes : 0;
    }

    bool full() const { return used_ == capacity_; }
    std::size_t size() const { return used_; }

private:
    static constexpr unsigned kSlotBits = 20;

    Session *pool_ = nullptr;
    std::size_t used_ = 0;
    std::size_t capacity_ = 0;
};

std::uint64_t secretOf(std::uint64_t n)
{
    std::uint64_t z = n + 0x1234567;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

struct Served {
    std::uint64_t allowed = 0;
    std::uint64_t refused = 0;
    std::uint64_t roles = 0;
};

Served serve(const SessionTable &table, const std::vector<std::uint64_t> &tokens, std::uint64_t requests,
             std::uint64_t seed)
{
    Served done;
    std::uint64_t x = seed;
    for (std::uint64_t i = 0; i < requests; i++) {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        const std::size_t n = static_cast<std::size_t>((x >> 32) * tokens.size() >> 32);
        const std::uint32_t roles = table.authorize(tokens[n] + ((x & 1023) == 0 ? 1u << 30 : 0), 1050);
        if (roles) {
            done.allowed++;
            done.roles ^= roles * i;
        } else {
            done.refused++;
        }
    }
    return done;
}

} // namespace web

int main(int argc, char **argv)
{
    const std::uint64_t requests = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 300000;
    const std::size_t sessions = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 100000;
    if (sessions == 0 || sessions > 1u << 20)
        return 2;
    web::SessionTable table(sessions);
    std::vector<std::uint64_t> tokens;
    for (std::uint64_t i = 0; !table.full(); i++)
        tokens.push_back(table.open(web::secretOf(i), 1000 + static_cast<std::uint32_t>(i % 1000), 1u << (i % 12)));

    web::Served served[2];
    std::thread first([&] { served[0] = web::serve(table, tokens, requests, 5); });
    std::thread second([&] { served[1] = web::serve(table, tokens, requests, 6); });
    first.join();
    second.join();
    std::printf("%zu sessions: allowed %llu, refused %llu, roles %llx\n", table.size(),
                static_cast<unsigned long long>(served[0].allowed + served[1].allowed),
                static_cast<unsigned long long>(served[0].refused + served[1].refused),
                static_cast<unsigned long long>(served[0].roles ^ served[1].roles));
    return 0;
}
