// Where the time of a C++ program without the library's containers goes: each line says which fields it
// touches. With an argument it runs that many rounds.
#include <cstdio>
#include <cstdlib>

struct Counted { long uses = 0; };   // Counted.uses Session.uses Shape.uses Circle.uses Box.uses

struct Shape : Counted {
    Shape *next = nullptr;
    int kind = 0;
    virtual ~Shape() {}
    virtual double area() const = 0;
};
struct Circle : Shape {
    double radius = 1;
    double area() const override {
        return radius * radius;         // Circle.radius
    }
};
struct Box : Shape {
    double width = 2, height = 3;
    double area() const override {
        return width * height;          // Box.width Box.height
    }
};

struct Side { int price; int size; };
struct Quote { Side bid, ask; long sequence; };

// two bases that have data
struct Logged { long lines = 0; };   // Logged.lines Session.lines
struct Session : Counted, Logged {
    Quote last{};
    unsigned flags = 0;
    long received = 0;
};

template <class T> class Ring {
public:
    explicit Ring(unsigned long capacity) : items(new T[capacity]()), mask(capacity - 1) {}
    ~Ring() { delete[] items; }
    T &at(unsigned long i) {
        return items[i & mask];         // Ring.items Ring.mask
    }
    unsigned long head = 0;
private:
    T *items;
    unsigned long mask;
};

template <class T> struct Link { Link *next = nullptr; T value{}; };
template <class T> class Chain {
public:
    void push(Link<T> *link) {
        link->next = first;             // Link.next
        first = link;
    }
    template <class F> void each(F f) const {
        for (auto *l = first; l; l = l->next)   // Link.next Chain.first
            f(l->value);
    }
private:
    Link<T> *first = nullptr;
};

struct Tree {
    struct Node {
        Node *child[2] = { nullptr, nullptr };
        long key = 0;
        Session *session = nullptr;
    };
    Node *root = nullptr;
    long lookups = 0;
    __attribute__((noinline)) Session *find(long key) {
        lookups++;                      // Tree.lookups
        Node *n = root;                 // Tree.root
        while (n && n->key != key)      // Node.key
            n = n->child[key > n->key]; // Node.child[] Node.key
        return n ? n->session : nullptr; // Node.session
    }
};

__attribute__((noinline)) static double areas(const Shape *s) {
    double sum = 0;
    for (; s; s = s->next)              // Shape.next Circle.next Box.next
        if (s->kind >= 0)               // Shape.kind Circle.kind Box.kind
            sum += s->area();           // Shape._vptr.Shape Shape._vptr$Shape double.
    return sum;
}

__attribute__((noinline)) static void use(Shape &s) {
    s.uses++;                           // Shape.uses Counted.uses
    s.kind ^= 1;                        // Shape.kind
}

__attribute__((noinline)) static long update(Session &s, const Quote &q) {
    if (q.sequence <= s.last.sequence)  // Quote.sequence Session.last.sequence
        return 0;
    s.last = q;                         // Quote.bid Quote.ask Session.last.bid Session.last.ask Quote.sequence Session.last.sequence Quote.bid.price Session.last.bid.price
    s.received++;                       // Session.received
    s.lines++;                          // Session.lines Logged.lines
    s.uses++;                           // Session.uses Counted.uses Session.lines
    return s.last.bid.price             // Session.last.bid.price Quote.bid.price
        + s.flags;                      // Session.flags
}

__attribute__((noinline)) static long drain(Ring<Quote> &ring, Session &s, int n) {
    long sum = 0;
    for (int i = 0; i < n; i++)
        sum += ring.at(ring.head++).ask.size    // Ring.head Quote.ask.size
            + s.last.ask.price;                 // Session.last.ask.price Quote.ask.size
    return sum;
}

__attribute__((noinline)) static long chained(const Chain<Side> &chain) {
    long sum = 0;
    chain.each([&sum](const Side &side) {
        if (side.price > 3)             // Link.value.price Side.price
            sum += side.size;           // Link.value.size Side.size
    });
    return sum;
}

int main(int argc, char **argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 40, n = 10000;
    Shape *shapes = nullptr, **all = new Shape *[n];
    Chain<Side> chain;
    Tree tree;
    auto *sessions = new Session[n];
    Ring<Quote> ring(4096);
    for (int i = 0; i < n; i++) {
        Shape *s = i % 3 ? static_cast<Shape *>(new Circle) : new Box;
        s->next = shapes;
        shapes = all[i] = s;
        auto *l = new Link<Side>;
        l->value = { i & 7, i };
        chain.push(l);
        auto *node = new Tree::Node;
        node->key = i * 7919L % n;
        node->session = &sessions[node->key];
        Tree::Node **place = &tree.root;
        while (*place)
            place = &(*place)->child[node->key > (*place)->key];
        *place = node;
    }
    double sum = 0;
    long sequence = 0;
    for (int r = 0; r < rounds; r++) {
        for (int k = 0; k < 4; k++)
            sum += areas(shapes) + chained(chain);
        for (int i = 0; i < n; i++) {
            use(*all[i * 31 % n]);
            Quote q{ { i, 1 }, { i + 1, 2 }, ++sequence };
            Session *s = tree.find(i * 17 % n);
            if (s)
                sum += update(*s, q);
        }
        sum += drain(ring, sessions[r % n], 4 * n);
    }
    std::printf("%f %ld\n", sum, tree.lookups);
}
