// Containers whose nodes the code reaches by their bases, and by the elements that they have room for.

#include <cstdio>
#include <map>
#include <unordered_map>

struct Order { long id; int quantity; double price; };
struct Other { double weight; };

#define APART __attribute__((noinline))

APART static long in_tree(std::map<long, Order> &orders)
{
    long sum = 0;
    for (auto &[key, order] : orders)
        sum += key * order.quantity++;
    return sum;
}

APART static long found(std::map<long, Order> &orders, long key)
{
    auto at = orders.find(key);
    return at == orders.end() ? 0 : at->second.id;
}

APART static long in_hash(std::unordered_map<long, Order> &orders)
{
    long sum = 0;
    for (auto &[key, order] : orders)
        sum += key * order.quantity++;
    return sum;
}

// reaches the nodes by their bases alone: elsewhere the element's load, which is first, may have all samples
APART static long length(const std::unordered_map<long, Order> &orders)
{
    long nodes = 0;
    for (auto at = orders.begin(); at != orders.end(); ++at)
        nodes++;
    return nodes;
}

// an object of the element's type that is in no node
APART static long alone(const std::pair<const long, Other> &pair)
{
    return pair.first;
}

int main(int argc, char **argv)
{
    std::map<long, Order> tree;
    std::unordered_map<long, Order> hash;
    std::pair<const long, Other> own{ argc, { 2.0 } };
    const long count = argc > 1 ? 4000 : 10;
    for (long key = 0; key < count; key++) {
        tree[key * 7 % count] = { key, 1, 2.0 };
        hash[key * 7 % count] = { key, 1, 2.0 };
    }
    long sum = 0;
    for (int round = 0; round < (argc > 1 ? 4000 : 2); round++)
        sum += in_tree(tree) + in_hash(hash) + length(hash) + found(tree, round) + alone(own);
    std::printf("%ld\n", sum + (argv == nullptr));
    return 0;
}
