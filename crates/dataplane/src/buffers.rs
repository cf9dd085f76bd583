//! Receive buffers that go out to consumers and come back, without an allocation a round.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// Given-away buffers that are watched for their return.
const LENT: usize = 32;
/// How many of them are looked at for one that is back: the oldest, which are the likeliest.
const LOOKED_AT: usize = 8;

/// Buffers of one size. What consumers keep is theirs: the pool makes new ones then, and watches [`LENT`] of those
/// that are out (docs/spec/threads.md#receive-buffers).
pub(crate) struct Buffers {
    size: usize,
    lent: VecDeque<Bytes>,
}

impl Buffers {
    pub(crate) fn new(size: usize) -> Buffers {
        Buffers {
            size,
            lent: VecDeque::with_capacity(LENT),
        }
    }

    /// A full-length buffer that nobody else refers to; its contents are old.
    pub(crate) fn take(&mut self) -> BytesMut {
        for _ in 0..LOOKED_AT.min(self.lent.len()) {
            let Some(oldest) = self.lent.pop_front() else {
                break;
            };
            match oldest.try_into_mut() {
                Ok(buffer) => return buffer,
                Err(still_out) => self.lent.push_back(still_out),
            }
        }
        fresh(self.size)
    }

    /// Gives `buffer` away whole, and watches for its return.
    pub(crate) fn lend(&mut self, buffer: BytesMut) -> Bytes {
        let whole = buffer.freeze();
        if self.lent.len() >= LENT {
            self.lent.pop_front();
        }
        self.lent.push_back(whole.clone());
        whole
    }

    /// Buffers that are watched.
    #[cfg(test)]
    pub(crate) fn watched(&self) -> usize {
        self.lent.len()
    }
}

/// A buffer whose reference count is there from the start: splitting anything off makes it, and turning the buffer
/// into [`Bytes`] and back keeps it.
fn fresh(size: usize) -> BytesMut {
    let mut buffer = BytesMut::zeroed(size + 1);
    drop(buffer.split_off(size));
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_was_let_go_is_used_again_whole() {
        let mut buffers = Buffers::new(1_000);
        let first = buffers.take();
        let address = first.as_ptr();
        let slice = buffers.lend(first).slice(100..200);
        assert_ne!(buffers.take().as_ptr(), address, "it is still out");
        drop(slice);
        let again = buffers.take();
        assert_eq!((again.as_ptr(), again.len()), (address, 1_000));
        assert_eq!(buffers.watched(), 0);
    }

    #[test]
    fn what_consumers_keep_is_watched_only_up_to_the_cap() {
        let mut buffers = Buffers::new(10);
        let kept: Vec<_> = (0..100)
            .map(|_| {
                let buffer = buffers.take();
                buffers.lend(buffer)
            })
            .collect();
        assert_eq!((buffers.watched(), kept.len()), (LENT, 100));
    }
}
