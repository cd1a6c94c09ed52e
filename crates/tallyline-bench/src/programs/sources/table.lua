-- Objects in tables, strings as keys, closures, a sort.
local state = 42
local function random(limit)
  state = (state * 1103515245 + 12345) % 2147483648
  return state % limit
end
local accounts, names = {}, {}
for i = 1, 8000 do
  names[i] = "account" .. i
  accounts[names[i]] = { balance = i, seen = 0, owner = names[i] }
end
local total = 0
for step = 1, 30000 do
  local account = accounts[names[random(8000) + 1]]
  account.balance = account.balance + step
  account.seen = account.seen + 1
  total = total + account.balance % 7
end
local list = {}
for i = 1, 2000 do list[i] = random(1000000) end
table.sort(list, function(a, b) return a < b end)
local function counter()
  local count = 0
  return function() count = count + 1; return count end
end
local tick = counter()
for _ = 1, 30000 do tick() end
print(total, list[1], tick())
