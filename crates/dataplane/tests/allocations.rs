//! A datagram allocates nothing on the dataplane threads, neither on its way out nor on its way in. Alone in its
//! process, since the allocator is the process's.
#![allow(clippy::unwrap_used)]

mod nodes;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use falconet_dataplane::{Class, Completion, Consumer, Consumers, Full, Inbound, Rate};
use falconet_transport::Policy;
use nodes::*;

/// Counts the allocations of the threads that ask for it.
mod sys {
    #![allow(unsafe_code)]

    use std::alloc::{GlobalAlloc, Layout, System};
    use std::cell::Cell;
    use std::sync::atomic::{AtomicUsize, Ordering};

    thread_local! {
        static IS_COUNTED: Cell<bool> = const { Cell::new(false) };
    }
    static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

    struct Counting;

    fn count() {
        // A thread that ends has no such flag any more.
        if IS_COUNTED.try_with(Cell::get).unwrap_or(false) {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        }
    }

    // SAFETY: everything is the system allocator's; counting allocates nothing.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            count();
            // SAFETY: the caller's promises are the same.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
            // SAFETY: the caller's promises are the same.
            unsafe { System.dealloc(pointer, layout) }
        }

        unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            count();
            // SAFETY: the caller's promises are the same.
            unsafe { System.realloc(pointer, layout, size) }
        }
    }

    #[global_allocator]
    static ALLOCATOR: Counting = Counting;

    pub(crate) fn count_this_thread() {
        IS_COUNTED.with(|flag| flag.set(true));
    }

    pub(crate) fn allocations() -> usize {
        ALLOCATIONS.load(Ordering::Relaxed)
    }
}

/// Counts what it gets, and gives its batches back.
#[derive(Clone, Default)]
struct Returning {
    received: Arc<AtomicUsize>,
    emptied: Arc<Mutex<Vec<Vec<Inbound>>>>,
}

impl Consumer for Returning {
    fn deliver(&mut self, mut batch: Vec<Inbound>) -> Result<(), Full> {
        sys::count_this_thread();
        self.received.fetch_add(batch.len(), Ordering::Relaxed);
        batch.clear();
        self.emptied.lock().unwrap().push(batch);
        Ok(())
    }

    fn spare(&mut self) -> Option<Vec<Inbound>> {
        self.emptied.lock().unwrap().pop()
    }
}

#[derive(Default)]
struct CountSender(AtomicUsize);

impl Completion for CountSender {
    fn finished(&self, sent: usize, dropped: usize, _sent_bytes: usize, _at: Instant) {
        sys::count_this_thread();
        self.0.fetch_add(sent + dropped, Ordering::Relaxed);
    }
}

/// Sends batches of `lengths` datagrams one after the other, waiting for each; returns the allocations of both
/// dataplane threads meanwhile.
fn exchange(from: &Node, consumer: &Returning, batches: usize, datagrams: usize) -> usize {
    let left = Arc::new(CountSender::default());
    let (allocated, before) = (sys::allocations(), consumer.received.load(Ordering::Relaxed));
    for batch in 1..=batches {
        let mut outgoing = outgoing(numbered(0x11, datagrams as u32, 1_200), Class::Relay, None);
        outgoing.completion = Some(Arc::clone(&left) as Arc<dyn Completion>);
        from.dataplane.sender().try_send(outgoing).unwrap();
        let all = batch * datagrams;
        let start = Instant::now();
        while consumer.received.load(Ordering::Relaxed) - before < all {
            assert!(start.elapsed() < PATIENCE, "batch {batch}");
            std::thread::sleep(Duration::from_micros(50));
        }
    }
    sys::allocations() - allocated
}

#[test]
fn a_datagram_allocates_nothing_in_steady_state() {
    for policy in [Policy::Require, Policy::Plain] {
        let consumer = Returning::default();
        let (tx, received) = std::sync::mpsc::channel();
        drop(tx);
        let returning = consumer.clone();
        let consumers = move |events| Consumers {
            chunks: Box::new(returning.clone()),
            messages: Box::new(returning),
            events,
        };
        let a = start(1, config().with_rate(Rate::Unlimited));
        let b = start_with(2, config(), consumers, received);
        a.knows(&b, policy);
        b.knows(&a, policy);
        for datagrams in [1, 44, 300] {
            // Tables and buffers grow to what the traffic needs.
            exchange(&a, &consumer, 200, datagrams);
            let allocations = exchange(&a, &consumer, 200, datagrams);
            // A busy machine may make another size of buffers or a longer batch necessary than before, once. What
            // allocates by the batch or by the datagram does so 200 times at least.
            assert!(
                allocations <= 8,
                "{allocations}: {policy:?}, batches of {datagrams}"
            );
        }
    }
}
