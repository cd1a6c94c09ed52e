// SPDX-License-Identifier: MIT OR Apache-2.0
// An order book: a thread for each side adds orders and matches, a reporter reads both sides' best prices.
//
// The layout is naive on purpose: both sides' state lies in one object, with the settings that both read.
//
//     c++ -std=c++17 -O2 -g -pthread -o order_book order_book.cc
//     ./order_book ORDERS
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr unsigned Levels = 256;

// An order, with what the matching needs and what only the report does.
struct Order {
  bool is_open;
  std::uint64_t client;
  char tag[24];
  std::uint32_t price;
  std::uint64_t created;
  std::uint32_t quantity;
  std::uint16_t venue;
};

// The state of one side, and what both sides share.
struct Book {
  std::uint64_t bid_best = 0;
  std::uint64_t ask_best = 0;
  std::uint64_t bid_orders = 0;
  std::uint64_t ask_orders = 0;
  std::uint64_t bid_volume = 0;
  std::uint64_t ask_volume = 0;
  std::uint32_t tick = 1;
  std::uint32_t lot = 10;
  std::atomic<std::uint64_t> trades{0};
};

Book book;

std::uint32_t next_random(std::uint32_t &state) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

// Adds an order to the buyers' side.
void buy(std::vector<Order> &orders, std::array<std::uint32_t, Levels> &levels, std::uint32_t random) {
  Order &order = orders[random % orders.size()];
  std::uint32_t price = (random >> 8) % Levels / book.tick * book.tick;
  order.price = price;
  order.quantity = (random & 7) * book.lot;
  order.is_open = true;
  levels[price % Levels] += order.quantity;
  book.bid_orders++;
  book.bid_volume += order.quantity;
  if (price > book.bid_best)
    book.bid_best = price;
  if ((random & 15) == 0)
    book.trades.fetch_add(1, std::memory_order_relaxed);
}

// Adds an order to the sellers' side.
void sell(std::vector<Order> &orders, std::array<std::uint32_t, Levels> &levels, std::uint32_t random) {
  Order &order = orders[random % orders.size()];
  std::uint32_t price = (random >> 8) % Levels / book.tick * book.tick;
  order.price = price;
  order.quantity = (random & 7) * book.lot;
  order.is_open = true;
  levels[price % Levels] += order.quantity;
  book.ask_orders++;
  book.ask_volume += order.quantity;
  if (price > book.ask_best)
    book.ask_best = price;
  if ((random & 15) == 0)
    book.trades.fetch_add(1, std::memory_order_relaxed);
}

template <typename Side> void trade(Side side, unsigned long count, std::uint32_t seed) {
  std::vector<Order> orders(1024);
  std::array<std::uint32_t, Levels> levels{};
  for (unsigned long at = 0; at < count; at++)
    side(orders, levels, next_random(seed));
}

} // namespace

int main(int argc, char **argv) {
  unsigned long count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1000000;
  std::thread buyers([=] { trade(buy, count, 1); });
  std::thread sellers([=] { trade(sell, count, 2); });
  buyers.join();
  sellers.join();
  std::printf("%lu bids, %lu asks, best %lu and %lu, %lu trades\n", (unsigned long)book.bid_orders,
              (unsigned long)book.ask_orders, (unsigned long)book.bid_best, (unsigned long)book.ask_best,
              (unsigned long)book.trades.load());
  return book.bid_orders == count && book.ask_orders == count ? 0 : 1;
}
