//! Lists of statics, which grow without a lock.
//!
//! An element is linked by a word of its own, so that a signal handler, or a constructor that runs
//! before anything else, can add it. `fork` may come in the middle: the link's state then has the
//! number of forks that led to the parent, and the child adds the element itself.

use super::forks;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// State of a link whose element is in the list.
const LISTED: u64 = u64::MAX;

/// The link to the next element that each element of a [`StaticList`] contains; zeros if it is in no list. Part of the
/// C ABI.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Link<T> {
    next: AtomicPtr<T>,
    /// 0, [`LISTED`], or one more than the forks that led to the process that is adding it.
    state: AtomicU64,
}

impl<T> Link<T> {
    pub(crate) const fn new() -> Link<T> {
        Link { next: AtomicPtr::new(std::ptr::null_mut()), state: AtomicU64::new(0) }
    }
}

/// A type that contains a [`Link`], so that its statics can be in a [`StaticList`].
pub(crate) trait Linked: Sized + Sync + 'static {
    /// Returns the link, which nobody but the list uses.
    fn link(&self) -> &Link<Self>;
}

/// A lock-free linked list of statics, each of which contains its link.
#[derive(Debug)]
pub(crate) struct StaticList<T>(AtomicPtr<T>);

impl<T: Linked> StaticList<T> {
    pub(crate) const fn new() -> StaticList<T> {
        StaticList(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Adds an element to the list, unless it is in it or another thread is adding it; a load if it is in it.
    /// Async-signal-safe.
    #[inline]
    pub(crate) fn add(&self, element: &'static T) {
        if element.link().state.load(Ordering::Acquire) != LISTED {
            self.add_anew(element);
        }
    }

    #[cold]
    fn add_anew(&self, element: &'static T) {
        let link = element.link();
        let ours = forks() + 1;
        let seen = link.state.load(Ordering::Acquire);
        if seen == LISTED || seen == ours {
            return;
        }
        if link.state.compare_exchange(seen, ours, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return;
        }
        // a thread of the parent was at it when this process was forked: how far did it get?
        if seen == 0 || !self.iter().any(|other| std::ptr::eq(other, element)) {
            let this = std::ptr::from_ref(element).cast_mut();
            let link_to = |first| {
                link.next.store(first, Ordering::Relaxed);
                Some(this)
            };
            // never fails: there is always something to store
            let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, link_to);
        }
        link.state.store(LISTED, Ordering::Release);
    }

    /// Returns an iterator over the elements of the list, the newest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static T> + use<T> {
        // SAFETY: addresses in the list are null, or of elements that live as long as they are in it.
        let element = |address: *mut T| unsafe { NonNull::new(address).map(|place| place.as_ref()) };
        let first = element(self.0.load(Ordering::Acquire));
        std::iter::successors(first, move |here| element(here.link().next.load(Ordering::Acquire)))
    }

    /// Removes an element from the list, after which its memory may be freed; does nothing if it is not in it. Elements
    /// added meanwhile stay.
    ///
    /// # Safety
    /// Nobody walks the list or removes another element meanwhile, and nobody adds this one again.
    pub(crate) unsafe fn remove(&self, element: &T) {
        let this = std::ptr::from_ref(element).cast_mut();
        let next = element.link().next.load(Ordering::Acquire);
        if self.0.compare_exchange(this, next, Ordering::AcqRel, Ordering::Acquire).is_err()
            && let Some(before) = self.iter().find(|other| other.link().next.load(Ordering::Acquire) == this)
        {
            before.link().next.store(next, Ordering::Release);
        }
        element.link().state.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Element(u64, Link<Element>);

    impl Linked for Element {
        fn link(&self) -> &Link<Element> {
            &self.1
        }
    }

    /// Returns new elements, which are never freed and stay reachable, so that they are no leak.
    fn elements(count: u64) -> Vec<&'static Element> {
        static ALL: std::sync::Mutex<Vec<&'static Element>> = std::sync::Mutex::new(Vec::new());
        let new: Vec<_> =
            (0..count).map(|number| &*Box::leak(Box::new(Element(number, Link::new())))).collect();
        ALL.lock().expect("no test panics with it").extend(&new);
        new
    }

    fn numbers(list: &StaticList<Element>) -> Vec<u64> {
        let mut numbers: Vec<u64> = list.iter().map(|element| element.0).collect();
        numbers.sort_unstable();
        numbers
    }

    #[test]
    fn elements_that_several_threads_add_are_there_once() {
        let (list, elements) = (StaticList::<Element>::new(), elements(500));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| elements.iter().for_each(|element| list.add(element)));
            }
        });
        assert_eq!(numbers(&list), (0..500).collect::<Vec<_>>());
    }

    #[test]
    fn removed_elements_are_gone_and_may_come_back() {
        let (list, elements) = (StaticList::<Element>::new(), elements(4));
        elements.iter().for_each(|element| list.add(element));
        for element in [elements[3], elements[0], elements[0], elements[2]] {
            // SAFETY: one thread.
            unsafe { list.remove(element) };
        }
        assert_eq!(numbers(&list), [1]);
        list.add(elements[2]);
        assert_eq!(numbers(&list), [1, 2]);
    }

    #[test]
    fn an_element_that_the_parent_of_a_fork_was_adding_is_added_once() {
        let (list, elements) = (StaticList::<Element>::new(), elements(2));
        // as it is in a child: before and after the parent's thread had it in the list
        let of_parent = forks() + 100;
        elements[0].1.state.store(of_parent, Ordering::Relaxed);
        list.add(elements[0]);
        list.add(elements[1]);
        elements[0].1.state.store(of_parent, Ordering::Relaxed);
        list.add(elements[0]);
        assert_eq!(numbers(&list), [0, 1]);
    }
}
