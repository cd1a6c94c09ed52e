// Values in C++ containers, published where the containers put them.
#include "published.h"
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#define NOINLINE __attribute__((noinline))

struct Item { std::uint64_t key = 0; std::uint32_t flags = 0, uses = 0; double weight = 1; std::string label; };
struct Session { std::shared_ptr<Item> item; std::uint64_t packets = 0, bytes = 0; std::uint16_t port = 0; };

NOINLINE static double in_vector(std::vector<Item> &items)
{
	double sum = 0;
	for (Item &item : items) {
		item.uses++;
		if (item.flags & 1)
			sum += item.weight;
	}
	return sum;
}
NOINLINE static std::uint64_t by_index(std::vector<Item> &items, std::size_t first)
{
	std::uint64_t sum = 0;
	for (std::size_t i = first; i < items.size(); i += 3) {
		sum += items[i].key + items[i].label.size();
		items[i].flags ^= 2;
	}
	return sum;
}
NOINLINE static std::uint64_t in_map(std::map<std::uint64_t, Session> &sessions, std::uint64_t key, unsigned size)
{
	auto found = sessions.find(key);
	if (found == sessions.end())
		return 0;
	found->second.packets++;
	found->second.bytes += size;
	return found->second.item->key + found->second.port;
}
NOINLINE static std::uint64_t all_map(const std::map<std::uint64_t, Session> &sessions)
{
	std::uint64_t sum = 0;
	for (const auto &[key, session] : sessions)
		sum += key ^ session.bytes ^ session.item->flags;
	return sum;
}
NOINLINE static double in_hash(std::unordered_map<std::uint64_t, Item> &items, std::uint64_t key)
{
	auto found = items.find(key);
	if (found == items.end())
		return 0;
	found->second.uses++;
	return found->second.weight;
}
NOINLINE static double all_hash(std::unordered_map<std::uint64_t, Item> &items)
{
	double sum = 0;
	for (auto &[key, item] : items) {
		sum += item.weight * item.uses;
		item.flags++;
	}
	return sum;
}
NOINLINE static std::uint64_t in_list(std::list<Session> &sessions)
{
	std::uint64_t sum = 0;
	for (Session &session : sessions) {
		session.bytes += session.packets;
		sum += session.item->uses + session.item->label[0];
	}
	return sum;
}
NOINLINE static double shared(const std::vector<std::shared_ptr<Item>> &items)
{
	double sum = 0;
	for (const auto &item : items)
		sum += item->weight + item->flags;
	return sum;
}
NOINLINE static double unique(const std::unique_ptr<Item[]> &items, int count)
{
	double sum = 0;
	for (int i = 0; i < count; i++)
		sum += items[i].weight * items[i].uses;
	return sum;
}

int main()
{
	std::vector<Item> items(60);
	std::map<std::uint64_t, Session> sessions;
	std::unordered_map<std::uint64_t, Item> hashed;
	std::list<Session> listed;
	std::vector<std::shared_ptr<Item>> all;
	std::unique_ptr<Item[]> own(new Item[20]);
	double sum = 0;

	for (std::uint64_t i = 0; i < 40; i++) {
		all.push_back(std::make_shared<Item>());
		sessions[i * 3].item = all.back();
		hashed[i * 5].weight = double(i);
		listed.emplace_back();
		listed.back().item = all.back();
	}
	publish("Item", items.data(), sizeof(Item), items.size());
	publish("Item", own.get(), sizeof(Item), 20);
	for (auto &item : all)
		publish("Item", item.get(), sizeof(Item), 1);
	for (auto &[key, session] : sessions)
		publish("Session", &session, sizeof session, 1);
	for (auto &[key, item] : hashed)
		publish("Item", &item, sizeof item, 1);
	for (Session &session : listed)
		publish("Session", &session, sizeof session, 1);
	for (std::uint64_t i = 0; i < 40; i++)
		sum += in_map(sessions, i, 64) + in_hash(hashed, i);
	sum += in_vector(items) + by_index(items, 1) + all_map(sessions) + all_hash(hashed) + in_list(listed);
	sum += shared(all) + unique(own, 20);
	return sum == 1;
}
