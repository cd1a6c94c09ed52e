// Objects of C++ programs, published: derived lists, virtual calls, templates, matrices, small buffers, classes
// with several bases, arrays in classes.
#include "published.h"
#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#define NOINLINE __attribute__((noinline))

struct Link { Link *next = nullptr, *previous = nullptr; };
struct Named { std::uint32_t name = 0; std::uint16_t kind = 0, flags = 0; };
struct Task : Link, Named {
	std::int64_t due = 0;
	double load = 1;
	std::array<std::uint32_t, 6> steps{};
	Task *owner = nullptr;
};
struct Urgent : Task { int level = 2; std::uint64_t raised = 0; };

template <typename Item, std::size_t Size> struct Pool {
	std::size_t used = 0;
	std::uint64_t taken = 0, refused = 0;
	Item items[Size];
	NOINLINE Item *take() {
		if (used == Size) {
			refused++;
			return nullptr;
		}
		taken++;
		return &items[used++];
	}
	template <typename Each> NOINLINE long each(Each call) {
		long sum = 0;
		for (std::size_t i = 0; i < used; i++)
			sum += call(items[i]);
		return sum;
	}
};

class Account {
public:
	virtual ~Account() = default;
	virtual long settle(long amount) = 0;
	NOINLINE long balance() const { return balance_ - reserved_; }
protected:
	long balance_ = 10, reserved_ = 1;
	std::uint32_t operations_ = 0;
};
class Savings final : public Account {
	double rate_ = 0.5;
	long history_[8] = {};
public:
	NOINLINE long settle(long amount) override {
		history_[operations_++ & 7] = amount;
		balance_ += static_cast<long>(static_cast<double>(amount) * rate_);
		return balance_;
	}
};
class Checking final : public Account {
	long fees_ = 0;
	std::atomic<std::uint32_t> pending_{0};
public:
	NOINLINE long settle(long amount) override {
		fees_ += amount & 3;
		pending_.fetch_add(1, std::memory_order_relaxed);
		operations_++;
		return balance_ -= fees_;
	}
};

template <int Rows, int Columns> struct Matrix {
	double cell[Rows][Columns];
	int touched = 0;
	NOINLINE double sum_row(int row) const {
		double sum = 0;
		for (int i = 0; i < Columns; i++)
			sum += cell[row][i];
		return sum;
	}
	NOINLINE double sum_column(int column) const {
		double sum = 0;
		for (int i = 0; i < Rows; i++)
			sum += cell[i][column];
		return sum;
	}
	NOINLINE void scale(double by) {
		for (auto &row : cell)
			for (double &one : row)
				one *= by;
		touched++;
	}
};

struct Point { float x, y; };
struct Quad { Point corner[4]; std::uint32_t colour; bool visible; };

NOINLINE static void append(Link &head, Link &fresh)
{
	fresh.previous = head.previous;
	fresh.next = &head;
	head.previous->next = &fresh;
	head.previous = &fresh;
}

NOINLINE static double busiest(const Link &head)
{
	double most = 0;
	for (const Link *link = head.next; link != &head; link = link->next) {
		const Task &task = static_cast<const Task &>(*link);
		if (task.load > most && task.due >= 0)
			most = task.load + task.steps[2];
	}
	return most;
}

NOINLINE static std::int64_t raise(Urgent &urgent, std::int64_t now)
{
	urgent.raised++;
	urgent.due = now;
	urgent.flags |= 4;
	urgent.steps[now % 6]++;
	if (urgent.owner)
		urgent.owner->load += urgent.level;
	return urgent.due + urgent.name;
}

NOINLINE static void move(Quad *quads, int count, float dx, float dy)
{
	for (int i = 0; i < count; i++) {
		if (!quads[i].visible)
			continue;
		for (Point &point : quads[i].corner) {
			point.x += dx;
			point.y += dy;
		}
		quads[i].colour ^= 0xff;
	}
}

NOINLINE static float width(const Quad &quad) { return quad.corner[2].x - quad.corner[0].x; }

NOINLINE static long settle_all(Account **accounts, int count)
{
	long sum = 0;
	for (int i = 0; i < count; i++)
		sum += accounts[i]->settle(i) + accounts[i]->balance();
	return sum;
}

int main()
{
	static Pool<Task, 32> tasks;
	static Pool<Urgent, 8> urgents;
	static Matrix<6, 9> matrix;
	Link head;
	Quad *quads = new Quad[40]();
	Savings *savings = new Savings[10];
	Checking *checking = new Checking[10];
	Account *accounts[20];
	double sum = 0;

	publish("Pool<Task, 32>", &tasks, sizeof tasks, 1);
	publish("Pool<Urgent, 8>", &urgents, sizeof urgents, 1);
	publish("Matrix<6, 9>", &matrix, sizeof matrix, 1);
	publish("Quad", quads, sizeof *quads, 40);
	publish("Savings", savings, sizeof *savings, 10);
	publish("Checking", checking, sizeof *checking, 10);
	head.next = head.previous = &head;
	for (int i = 0; i < 40; i++) {
		if (Task *task = tasks.take()) {
			task->load = i;
			task->steps[i % 6] = 3;
			append(head, *task);
			task->owner = static_cast<Task *>(head.next);
		}
		if (Urgent *urgent = urgents.take()) {
			urgent->owner = &tasks.items[i];
			urgent->name = i;
		}
		quads[i].visible = i % 3 != 0;
	}
	for (int i = 0; i < 10; i++) {
		accounts[2 * i] = &savings[i];
		accounts[2 * i + 1] = &checking[i];
	}
	for (int i = 0; i < 8; i++)
		sum += raise(urgents.items[i], i);
	for (int i = 0; i < 6; i++) {
		matrix.scale(1.5);
		sum += matrix.sum_row(i) + matrix.sum_column(i) + width(quads[i]);
	}
	move(quads, 40, 1, 2);
	sum += busiest(head) + settle_all(accounts, 20) + settle_all(accounts, 20);
	sum += tasks.each([](Task &task) { return task.due + task.kind; });
	sum += urgents.each([](Urgent &urgent) { return long(urgent.raised) + urgent.flags; });
	return sum == 1;
}
