# Objects with attributes, dictionaries by string, lists, a sort, calls; nothing imported.
state = 42


def random(limit):
    global state
    state = (state * 1103515245 + 12345) % 2147483648
    return state % limit


class Account:
    def __init__(self, number):
        self.number = number
        self.balance = 0
        self.seen = 0

    def add(self, amount):
        self.balance += amount
        self.seen += 1
        return self.balance


accounts = {"account %d" % number: Account(number) for number in range(3000)}
names = list(accounts)
total = 0
for step in range(15000):
    total += accounts[names[random(3000)]].add(step) % 7
values = sorted([random(1000000) for _ in range(3000)], key=lambda value: -value)
words = {}
for value in values:
    word = str(value % 500)
    words[word] = words.get(word, 0) + 1
print(total, values[0], len(words))
