/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * statctr: groups of counters that are declared once, updated together and read together.
 * <statctr.h> includes this file, and says what holds for every function.
 *
 * A kind of group is a list of its items, with units and help texts, and of its events:
 *
 *     #define TRAFFIC(EVENT, ITEM, kind)                                   \
 *         EVENT(kind, looped, 4)                                           \
 *         ITEM(kind, rx_packets, STATCTR_PACKETS, "packets received")      \
 *         ITEM(kind, rx_bytes, STATCTR_BYTES, "bytes received")            \
 *         ITEM(kind, tx_packets, STATCTR_PACKETS, "packets sent")          \
 *         ITEM(kind, tx_bytes, STATCTR_BYTES, "bytes sent")                \
 *         ITEM(kind, drops, STATCTR_PACKETS, "packets dropped")
 *     STATCTR_GROUP(traffic, TRAFFIC);
 *
 *     static statctr_group_t lo;                                           // zeroed
 *     int error = statctr_group_init(&lo, &traffic_group);
 *     statctr_group_event4(&lo, traffic_looped, 1, 1500, 1, 1500);         // one commit
 *     statctr_group_add(&lo, traffic_drops, 1);
 *     uint64_t values[traffic_SLOTS];
 *     error = statctr_group_fold(&lo, values, traffic_SLOTS);
 *     printf("%" PRIu64 " bytes\n", values[traffic_rx_bytes]);
 *
 * STATCTR_GROUP(traffic, TRAFFIC) declares
 *   - an enumerator for each item, `traffic_rx_packets`: its slot, in the order of the list;
 *   - an enumerator for each event, `traffic_looped`: the slot of its first item;
 *   - `traffic_SLOTS`, the length of the group, and `traffic_group`, its description.
 *
 * EVENT(kind, name, width) stands before the items of an event, which are those of the next
 * `width` slots: 2, 4 or 8. It moves on to a multiple of `width`, so that one vector store can
 * hold the event; a slot that is skipped for that reads as 0. An event of three items is one of
 * four to which you add 0 in the last place; the slot may be another item's.
 *
 * # One commit, one event
 * The items of an event are added to by one store, so they go together under any preemption. A
 * reader sees two items together where they form an event of 2; wider, and for all items in a
 * process without rseq, each item is exact, but a reader that runs at the same time may see one
 * item of an event before another.
 *
 * # Cost of an update
 * statctr_group_add() costs as much as statctr_add(), an event about as much as two of these.
 * Inline: adds, of groups without events on aarch64; on x86-64 adds and events of 2 always. Events of 4 where the file is compiled for AVX2
 * or AVX-512VL, events of 8 for AVX-512VL; with clang both in any file, on machines with
 * AVX-512VL. Elsewhere they are library calls, as is everything with STATCTR_NO_INLINE. The
 * reason: these stores need registers that a compiler for plain x86-64 does not know of, and that
 * a function with an attribute like target("avx512f") around the update could be using.
 */
#ifndef STATCTR_H
#include <statctr.h> /* and that this file, after its own part */
#endif
#ifndef STATCTR_GROUP_H
#define STATCTR_GROUP_H

#ifdef __cplusplus
extern "C" {
#endif

/** Handle of a group. Zeroed: not initialised. The fields are for these headers only. */
typedef struct statctr_group {
    statctr_handle_t home; /* as a counter's, of slot 0 */
    void *schema;
    uint32_t lines; /* cache lines of 8 slots */
    uint32_t twin;
} statctr_group_t;

STATCTR_STATIC_ASSERT_(sizeof(statctr_group_t) == 3 * sizeof(void *) + 8, "statctr_group_t has no padding");

/** An item (width 0), or an event (its width) and the slot of its first item. */
typedef struct statctr_item_desc {
    const char *name;
    const char *unit;
    const char *help;
    uint32_t slot;
    uint32_t width;
} statctr_item_desc_t;

/** A kind of group. Make it with STATCTR_GROUP(). */
typedef struct statctr_group_desc {
    const statctr_item_desc_t *items;
    uint32_t count; /* of the descriptions, those of events among them */
    uint32_t slots;
} statctr_group_desc_t;

STATCTR_STATIC_ASSERT_(sizeof(statctr_item_desc_t) == 3 * sizeof(void *) + 8, "no padding");
STATCTR_STATIC_ASSERT_(sizeof(statctr_group_desc_t) == sizeof(void *) + 8, "no padding");

/** Units for ITEM(); any other string is a unit as well: its name in the plural. */
#define STATCTR_NO_UNIT ""
#define STATCTR_BYTES "bytes"
#define STATCTR_PACKETS "packets"
#define STATCTR_OPERATIONS "operations"
#define STATCTR_NANOSECONDS "nanoseconds"
#define STATCTR_SECONDS "seconds"

#ifdef __GNUC__
#define STATCTR_MAYBE_UNUSED_ __attribute__((unused))
#else
#define STATCTR_MAYBE_UNUSED_
#endif

/** Declares a kind of group; see the top of this file. */
#define STATCTR_GROUP(kind, LIST)                                                                 \
    enum kind##_item {                                                                            \
        LIST(STATCTR_ENUM_EVENT_, STATCTR_ENUM_ITEM_, kind) kind##_SLOTS                          \
    };                                                                                            \
    LIST(STATCTR_CHECK_EVENT_, STATCTR_CHECK_ITEM_, kind)                                         \
    STATCTR_MAYBE_UNUSED_ static const statctr_item_desc_t kind##_items_[] = {                    \
        LIST(STATCTR_DESC_EVENT_, STATCTR_DESC_ITEM_, kind)                                       \
    };                                                                                            \
    STATCTR_MAYBE_UNUSED_ static const statctr_group_desc_t kind##_group = {                      \
        kind##_items_, sizeof(kind##_items_) / sizeof(kind##_items_[0]), kind##_SLOTS             \
    }

/* An event: the next enumerator rounded up, and one back, so that its first item has that value. */
#define STATCTR_ENUM_EVENT_(kind, event, width)                                                   \
    kind##_##event##_pad_, kind##_##event = (kind##_##event##_pad_ + (width) - 1) & ~((width) - 1), \
    kind##_##event##_back_ = kind##_##event - 1,
#define STATCTR_ENUM_ITEM_(kind, item, unit, help) kind##_##item,

#define STATCTR_CHECK_EVENT_(kind, event, width)                                                  \
    STATCTR_STATIC_ASSERT_((width) == 2 || (width) == 4 || (width) == 8, "an event is 2, 4 or 8 wide");
#define STATCTR_CHECK_ITEM_(kind, item, unit, help)

#define STATCTR_DESC_EVENT_(kind, event, width) { #event, "", "", kind##_##event, (width) },
#define STATCTR_DESC_ITEM_(kind, item, unit, help) { #item, unit, help, kind##_##item, 0 },

/**
 * Initialises a group of this kind, all zero. The former content of `group` is ignored. The description
 * is copied.
 * Cost: as statctr_init(). Errors: -EINVAL (NULL, or a description that contradicts itself),
 * -E2BIG (more than 8192 slots), and as statctr_init(). The handle is zeroed on error. Signals:
 * not safe.
 */
#if defined(STATCTR_INLINE_)
static inline
#else
extern
#endif
int statctr_group_init(statctr_group_t *group, const statctr_group_desc_t *kind);

/**
 * Gives a group's memory back and zeroes the handle. Nothing else may be using the group.
 * Cost: a lock. Errors: -EINVAL (NULL; not initialised, so also a second cleanup). Signals: not
 * safe.
 */
extern int statctr_group_cleanup(statctr_group_t *group);

/**
 * Adds `value` to one item, modulo 2^64.
 * Cost: see the top of this file. Errors: -EINVAL (NULL, or not initialised), -ERANGE (a slot
 * beyond the group's cache lines); nothing is counted then. A slot behind the last item in its cache line is no error,
 * and what is added there is never read. Order: relaxed. Signals: safe.
 */
STATCTR_UPDATE_ int statctr_group_add(statctr_group_t *group, unsigned item, uint64_t value);

/** Adds 1 to one item. Otherwise as statctr_group_add(). */
STATCTR_UPDATE_ int statctr_group_inc(statctr_group_t *group, unsigned item);

/** Subtracts 1 from one item. Otherwise as statctr_group_add(). */
STATCTR_UPDATE_ int statctr_group_dec(statctr_group_t *group, unsigned item);

/**
 * Adds to the items of an event of 2 by one commit: `first` to the item in the event's slot, and
 * so on.
 * Cost: see the top of this file. Errors: as statctr_group_add(); -ERANGE also for an event that
 * is not a multiple of its width. Order, signals: as statctr_group_add().
 */
STATCTR_UPDATE_ int statctr_group_event2(statctr_group_t *group, unsigned event, uint64_t v0, uint64_t v1);

/** Adds to the items of an event of 4 (or 3) by one commit. Otherwise as statctr_group_event2(). */
STATCTR_UPDATE_ int statctr_group_event4(statctr_group_t *group, unsigned event, uint64_t v0, uint64_t v1,
                                         uint64_t v2, uint64_t v3);

/** Adds to the items of an event of 8 (or 5 to 7) by one commit. Otherwise as statctr_group_event2(). */
STATCTR_UPDATE_ int statctr_group_event8(statctr_group_t *group, unsigned event, const uint64_t values[8]);

/**
 * Reads the value of one item.
 * Cost: one cache line for each CPU that counted. Errors: -EINVAL (a NULL, or not initialised),
 * -ERANGE. Signals: not safe. `*value` is left alone on error.
 */
extern int statctr_group_read_item(const statctr_group_t *group, unsigned item, uint64_t *value);

/**
 * Reads one CPU's part of one item; see statctr_read_cpu().
 * Cost: one cache line. Errors: as statctr_group_read_item(). Signals: not safe.
 */
extern int statctr_group_read_cpu(const statctr_group_t *group, unsigned cpu, unsigned item, uint64_t *value);

/**
 * Reads the values of all slots into `values`, which has room for `len` of them: CPU by CPU, each cache
 * line once. What lies behind the group's slots is left alone.
 * Cost: the group's cache lines, for each CPU that counted. Errors: -EINVAL (a NULL, or not
 * initialised), -ENOSPC (`len` is too small; nothing is written). Signals: not safe.
 */
extern int statctr_group_fold(const statctr_group_t *group, uint64_t *values, size_t len);

/**
 * Reads the values of `count` groups of one kind, side by side in `values`; see
 * statctr_group_fold().
 * Errors: also -EINVAL for groups of different kinds, and -ENOMEM. Signals: not safe.
 */
extern int statctr_group_fold_many(const statctr_group_t *groups, size_t count, uint64_t *values, size_t len);

/**
 * Writes the values in the format of Linux's MIBs (IFLA_INET6_STATS): 64-bit numbers of
 * which the first is the number of slots and stands in the place of slot 0, then slots 1 to the
 * last, then zeros up to `bytes`. The target need not be aligned. A kind of group that is handed
 * on like this starts with an item that nobody counts in, as those of Linux do.
 * Cost: as statctr_group_fold(), and an allocation. Errors: -EINVAL (a NULL, or not initialised),
 * -ENOSPC (too small a target; nothing is written). Signals: not safe.
 */
extern int statctr_group_fill_stats(const statctr_group_t *group, void *target, size_t bytes);

/**
 * Sets the value of one item; see statctr_set().
 * Cost: a lock and a read. Errors: -EINVAL, -ERANGE. Signals: not safe.
 */
extern int statctr_group_set(statctr_group_t *group, unsigned item, uint64_t value);

/**
 * Returns the name, unit and help text of the item in a slot; empty strings in a slot that an event
 * skipped. They live as long as the process. Each pointer may be NULL where it is not wanted.
 * Cost: a call. Errors: -EINVAL (NULL, or not initialised), -ERANGE. Signals: not safe.
 */
extern int statctr_group_describe(const statctr_group_t *group, unsigned item, const char **name, const char **unit,
                                  const char **help);

/* For the inline code of these headers only: refuses code of another STATCTR_ABI. */
extern int statctr_group_init_abi(statctr_group_t *group, const statctr_group_desc_t *kind, unsigned abi);

#if defined(STATCTR_INLINE_)
static inline int statctr_group_init(statctr_group_t *group, const statctr_group_desc_t *kind)
{
    return statctr_group_init_abi(group, kind, STATCTR_ABI);
}
#endif

/* For the inline code of these headers only: the ways out of inline updates. */
extern int statctr_group_slow_add(statctr_group_t *group, unsigned item, uint64_t value);
extern int statctr_group_slow_event2(statctr_group_t *group, unsigned event, uint64_t v0, uint64_t v1);
extern int statctr_group_slow_event4(statctr_group_t *group, unsigned event, uint64_t v0, uint64_t v1, uint64_t v2,
                                     uint64_t v3);
extern int statctr_group_slow_event8(statctr_group_t *group, unsigned event, const uint64_t values[8]);

#if defined(STATCTR_UP)
/* With one CPU possible, groups are as everywhere; the library knows. */
static inline int statctr_group_add(statctr_group_t *group, unsigned item, uint64_t value)
{
    return statctr_group_slow_add(group, item, value);
}

static inline int statctr_group_inc(statctr_group_t *group, unsigned item)
{
    return statctr_group_slow_add(group, item, 1);
}

static inline int statctr_group_dec(statctr_group_t *group, unsigned item)
{
    return statctr_group_slow_add(group, item, UINT64_MAX);
}

#endif

#if defined(STATCTR_UP) || (defined(STATCTR_INLINE_) && !defined(__x86_64__))
/* No store is wide enough to be a commit: two copies of each line, and the library knows. */
static inline int statctr_group_event2(statctr_group_t *group, unsigned event, uint64_t v0, uint64_t v1)
{
    return statctr_group_slow_event2(group, event, v0, v1);
}

static inline int statctr_group_event4(statctr_group_t *group, unsigned event, uint64_t v0, uint64_t v1,
                                       uint64_t v2, uint64_t v3)
{
    return statctr_group_slow_event4(group, event, v0, v1, v2, v3);
}

static inline int statctr_group_event8(statctr_group_t *group, unsigned event, const uint64_t values[8])
{
    return statctr_group_slow_event8(group, event, values);
}
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* STATCTR_GROUP_H */
