-- Two tables of random keys with an index, a join, sorts, updates: larger than the caches near a core.
PRAGMA cache_size = 4000;
CREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT, city INTEGER);
CREATE TABLE purchase(id INTEGER PRIMARY KEY, customer INTEGER, amount INTEGER, note TEXT);
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 15000)
  INSERT INTO customer SELECT i, 'customer ' || (i * 7919 % 15000), i * 31 % 97 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
  INSERT INTO purchase SELECT i, 1 + i * 7919 % 15000, i * 104729 % 10007, 'note ' || i FROM n;
COMMIT;
CREATE INDEX by_customer ON purchase(customer);
SELECT sum(amount), count(*) FROM purchase JOIN customer ON customer.id = purchase.customer WHERE city < 50;
SELECT city, sum(amount) FROM customer JOIN purchase ON purchase.customer = customer.id GROUP BY city ORDER BY 2 DESC LIMIT 3;
UPDATE purchase SET amount = amount + 1 WHERE customer % 3 = 0;
SELECT count(DISTINCT note) FROM purchase WHERE note LIKE '%99%';
SELECT max(note) FROM (SELECT note FROM purchase ORDER BY amount, note);
