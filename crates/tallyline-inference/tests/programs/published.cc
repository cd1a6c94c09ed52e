// Derived objects by references to their bases, and containers of them, published.
#include "published.h"
#include <vector>

struct Counted {
	long references = 1;
	virtual ~Counted() = default;
	virtual long weigh() const = 0;
};
struct Position { int x = 1, y = 2; };
struct Shape : Counted {
	Position position;
	double area = 3;
	long weigh() const override { return references + position.x; }
};
struct Colour { unsigned char red = 1, green = 2, blue = 3; };
struct Pixel : Position { Colour colour; unsigned age = 0; };

__attribute__((noinline)) static void grow(Shape &shape) { shape.area *= 1.5; shape.position.y += 1; shape.references++; }
__attribute__((noinline)) static unsigned fade(std::vector<Pixel> &pixels)
{
	unsigned sum = 0;
	for (Pixel &pixel : pixels) {
		pixel.age++;
		pixel.colour.green ^= pixel.colour.red;
		sum += pixel.y + pixel.colour.blue;
	}
	return sum;
}
__attribute__((noinline)) static long weigh(const std::vector<Counted *> &all)
{
	long sum = 0;
	for (const Counted *one : all)
		sum += one->weigh();
	return sum;
}

int main()
{
	Shape *shapes = new Shape[100];
	std::vector<Counted *> all;
	std::vector<Pixel> pixels(200);
	publish("struct Shape", shapes, sizeof *shapes, 100);
	publish("struct Pixel", pixels.data(), sizeof pixels[0], pixels.size());
	for (int i = 0; i < 100; i++)
		all.push_back(&shapes[i]);
	long sum = 0;
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 100; i++)
			grow(shapes[i]);
		sum += fade(pixels) + weigh(all);
	}
	return sum == 1;
}
