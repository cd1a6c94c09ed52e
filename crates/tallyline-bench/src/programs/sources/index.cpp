// An ordered map, a hash table, particles one after the other, a list of shared objects, a queue.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

struct Quote { double bid; double ask; long count; };
struct Session { long hits; long bytes; char agent[48]; };
struct Particle { float x, y, z, vx, vy, vz; int kind; int age; };
struct Shape { Shape *next; long area; long color; char rest[40]; virtual long weight() const { return area; } };
struct Round : Shape { long weight() const override { return area * 3; } };
struct Event { long when; long what; };

static uint64_t state = 88172645463325252u;
static uint64_t next_random() {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

[[gnu::noinline]] static double quotes(std::map<uint32_t, Quote> &map, long count) {
  double sum = 0;
  for (; count > 0; count--) {
    auto found = map.lower_bound(uint32_t(next_random()));
    if (found != map.end()) sum += found->second.ask;
  }
  return sum;
}

[[gnu::noinline]] static void hit(std::unordered_map<uint64_t, Session> &sessions, long count) {
  for (; count > 0; count--) {
    auto found = sessions.find(next_random() % (1 << 17));
    if (found != sessions.end()) found->second.hits += count;
  }
}

[[gnu::noinline]] static void move(std::vector<Particle> &particles) {
  for (Particle &particle : particles) {
    particle.x += particle.vx;
    particle.age++;
  }
}

[[gnu::noinline]] static long weigh(Shape *&at, long count) {
  long sum = 0;
  for (; count > 0; count--) {
    sum += at->color;
    at = at->next;
  }
  return sum;
}

[[gnu::noinline]] static long drain(std::deque<Event> &queue, long count) {
  long sum = 0;
  for (; count > 0; count--) {
    queue.push_back({count, count & 3});
    if (queue.size() > 500) {
      sum += queue.front().when;
      queue.pop_front();
    }
  }
  return sum;
}

int main(int argc, char **argv) {
  long rounds = argc > 1 ? atol(argv[1]) : 1;
  std::map<uint32_t, Quote> map;
  for (int i = 0; i < 6000; i++) map[uint32_t(next_random())] = {double(i), double(i), i};
  std::unordered_map<uint64_t, Session> sessions;
  for (uint64_t i = 0; i < 1 << 17; i++) sessions[i].bytes = long(i);
  std::vector<Particle> particles(1 << 18);
  std::vector<Round> shapes(1 << 18);
  for (uint64_t i = 0, place = 0; i < shapes.size(); i++) {
    uint64_t next = (place * 1664525 + 1013904223) % shapes.size();
    shapes[place].next = &shapes[next];
    shapes[place].color = long(i);
    place = next;
  }
  std::deque<Event> queue;
  Shape *at = &shapes[0];
  double sum = 0;
  for (; rounds > 0; rounds--) {
    sum += quotes(map, 100000);
    hit(sessions, 100000);
    move(particles);
    sum += double(weigh(at, 40000)) + double(at->weight());
    sum += double(drain(queue, 100000));
  }
  std::printf("%g\n", sum);
}
