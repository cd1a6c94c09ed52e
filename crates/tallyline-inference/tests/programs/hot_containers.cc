// Where the time of a C++ program on the library's containers goes: each line says which fields it
// touches. With an argument it runs that many rounds.
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

struct Order { long id; int flags, quantity; double price; };
struct Customer { std::string name; std::vector<Order> orders; long visits = 0; };
struct Task { virtual ~Task() {} virtual long run() = 0; };
struct Sum final : Task {
    long total = 0;
    int step = 1;
    long run() override {
        return total += step;           // Sum.total Sum.step
    }
};

__attribute__((noinline)) static long in_map(std::map<long, Order> &orders, long key) {
    auto found = orders.find(key);
    if (found == orders.end())
        return 0;
    found->second.quantity++;           // pair.second.quantity
    return found->second.flags;         // pair.second.flags
}

__attribute__((noinline)) static double all_map(const std::map<long, Order> &orders) {
    double sum = 0;
    for (const auto &[key, order] : orders) // _Rb_tree_node_base._M_left _Rb_tree_node_base._M_right
        sum += order.price              // pair.second.price pair.first
            + key;                      // pair.first pair.second.price
    return sum;
}

__attribute__((noinline)) static long in_hash(std::unordered_map<long, Order> &orders, long key) {
    auto found = orders.find(key);
    return found == orders.end() ? 0
        : found->second.flags;          // pair.second.flags
}

__attribute__((noinline)) static double all_hash(const std::unordered_map<long, Order> &orders) {
    double sum = 0;
    for (const auto &[key, order] : orders)
        sum += order.price;             // pair.second.price
    return sum;
}

__attribute__((noinline)) static double all_vector(const std::vector<Order> &orders) {
    double sum = 0;
    for (const Order &order : orders)
        if (order.flags & 1)            // Order.flags
            sum += order.price;         // Order.price
    return sum;
}

__attribute__((noinline)) static long all_list(std::list<Order> &orders) {
    long sum = 0;
    for (Order &order : orders)
        sum += order.quantity++;        // Order.quantity
    return sum;
}

__attribute__((noinline)) static double all_shared(const std::vector<std::shared_ptr<Order>> &orders) {
    double sum = 0;
    for (const auto &order : orders)
        sum += order->price;            // Order.price shared_ptr._M_ptr
    return sum;
}

__attribute__((noinline)) static long all_tasks(const std::vector<std::unique_ptr<Task>> &tasks) {
    long sum = 0;
    for (const auto &task : tasks)
        sum += task->run();             // Task._vptr.Task Task._vptr$Task
    return sum;
}

__attribute__((noinline)) static long customers(std::map<std::string, Customer> &all, const std::string &name) {
    auto found = all.find(name);
    if (found == all.end())
        return 0;
    Customer &customer = found->second;
    customer.visits++;                  // Customer.visits pair.second.visits
    long sum = 0;
    for (const Order &order : customer.orders)
        sum += order.quantity;          // Order.quantity
    return sum;
}

__attribute__((noinline)) static long queued(std::deque<Order> &queue) {
    long sum = 0;
    for (int i = 0; i < 2000; i++) {
        Order order = queue.front();
        queue.pop_front();
        sum += order.id;
        queue.push_back(order);
    }
    return sum;
}

__attribute__((noinline)) static long in_set(const std::set<long> &ids, long key) {
    return ids.count(key);
}

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 40, n = 8000;
    std::map<long, Order> map;
    std::unordered_map<long, Order> hash;
    std::vector<Order> vector;
    std::list<Order> list;
    std::vector<std::shared_ptr<Order>> shared;
    std::vector<std::unique_ptr<Task>> tasks;
    std::map<std::string, Customer> names;
    std::deque<Order> queue;
    std::set<long> set;
    for (long i = 0; i < n; i++) {
        const long key = i * 7919 % n;
        Order order{ key, static_cast<int>(i), 1, 2.0 };
        map.emplace(key, order);
        hash.emplace(key, order);
        vector.push_back(order);
        list.push_back(order);
        shared.push_back(std::make_shared<Order>(order));
        tasks.push_back(std::make_unique<Sum>());
        names["customer " + std::to_string(key % 1000)].orders.push_back(order);
        queue.push_back(order);
        set.insert(key);
    }
    double sum = 0;
    const std::string known = "customer 77", other = "nobody";
    for (int r = 0; r < rounds; r++) {
        sum += all_map(map) + all_hash(hash) + all_list(list) + all_tasks(tasks) + queued(queue);
        for (int k = 0; k < 4; k++)
            sum += all_vector(vector) + all_shared(shared);
        for (long i = 0; i < n; i++)
            sum += in_map(map, i * 17 % n) + in_hash(hash, i * 31 % (n + 99)) + in_set(set, i * 13 % n);
        for (int i = 0; i < 500; i++)
            sum += customers(names, i % 9 ? known : other);
    }
    std::printf("%f\n", sum);
}
