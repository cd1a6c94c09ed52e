#include <cstdio>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

struct Base {
    virtual ~Base() {}
    virtual long cost() const {
        return id;                      /* Base.id */
    }
    long id;
    Base *next;
};
struct Order : Base {
    int quantity;
    double price;
    long cost() const override {
        return quantity                 /* Order.quantity */
            * id;                       /* Order.id */
    }
};
struct Item { long key; int flags; double weight; };

__attribute__((noinline)) double by_reference(Order &o) {
    o.quantity++;                       /* Order.quantity */
    return o.price                      /* Order.price Order.quantity */
        * o.quantity                    /* Order.quantity Order.price */
        + o.id;                         /* Order.id Order.price */
}

__attribute__((noinline)) long walk(Base *b) {
    long sum = 0;
    while (b) {
        sum += b->cost();               /* Base._vptr.Base Base._vptr$Base Base.id */
        sum += b->id;                   /* Base.id */
        b = b->next;                    /* Base.next */
    }
    return sum;
}

__attribute__((noinline)) double sum_of(const std::vector<Item> &v) {
    double sum = 0;
    for (auto &i : v)
        if (i.flags & 1)                /* Item.flags */
            sum += i.weight;            /* Item.weight */
    return sum;
}

__attribute__((noinline)) long shared(const std::vector<std::shared_ptr<Order>> &v) {
    long sum = 0;
    for (auto &p : v)
        sum += p->quantity;             /* Order.quantity shared_ptr._M_ptr */
    return sum;
}

__attribute__((noinline)) long in_map(const std::map<long, Item> &m, long key) {
    auto found = m.find(key);
    return found == m.end() ? 0
        : found->second.flags;          /* pair.second.flags Item.flags _Rb_tree_node_base._M_left */
}

__attribute__((noinline)) long all_map(const std::map<long, Item> &m) {
    long sum = 0;
    for (auto &[k, v] : m) {
        sum += v.weight > 3;            /* pair.second.weight Item.weight pair.first */
        sum += k;                       /* pair.first */
    }
    return sum;
}

__attribute__((noinline)) long in_hash(std::unordered_map<long, Item> &m, long key) {
    auto found = m.find(key);
    if (found == m.end())
        return 0;
    found->second.weight += 1;          /* pair.second.weight */
    return found->second.flags;         /* pair.second.flags Item.flags */
}

__attribute__((noinline)) long all_hash(const std::unordered_map<long, Item> &m) {
    long sum = 0;
    for (auto &[k, v] : m)
        sum += v.flags;                 /* pair.second.flags Item.flags */
    return sum;
}

__attribute__((noinline)) long all_list(const std::list<Item> &v) {
    long sum = 0;
    for (auto &p : v)
        sum += p.flags;                 /* Item.flags */
    return sum;
}

int main() {
    Base *head = nullptr;
    std::vector<Item> v;
    std::map<long, Item> m;
    std::unordered_map<long, Item> h;
    std::vector<std::shared_ptr<Order>> sp;
    std::map<std::string, Item> strings;
    std::list<Item> l;
    for (long i = 0; i < 1000; i++) {
        Order *o = new Order;
        o->id = i;
        o->quantity = i;
        o->price = i;
        o->next = head;
        head = o;
        Item item{i, (int)i, 1.0 * i};
        v.push_back(item);
        m[i] = item;
        h[i] = item;
        strings[std::to_string(i)] = item;
        l.push_back(item);
        sp.push_back(std::make_shared<Order>());
    }
    double sum = 0;
    for (int r = 0; r < 100; r++) {
        sum += walk(head) + sum_of(v) + all_map(m) + all_hash(h) + shared(sp) + all_list(l);
        for (long i = 0; i < 1000; i++)
            sum += in_map(m, i) + in_hash(h, i) + by_reference(*(Order *)head);
    }
    printf("%f\n", sum);
}
