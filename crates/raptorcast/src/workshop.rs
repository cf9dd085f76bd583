//! Memory and plans that are kept from message to message: a message in steady state must not make the system map
//! a page.

use bytes::Bytes;
use falconet_pool::{Lease, Pool, PoolError};

use crate::code::Plans;
use crate::geometry::Geometry;
use crate::merkle::Tree;

/// Just below the largest block that glibc's allocator can learn to keep instead of returning it to the system
/// (`DEFAULT_MMAP_THRESHOLD_MAX`, 32 MiB on 64-bit hosts; see `M_MMAP_THRESHOLD` in mallopt(3)).
const LARGEST_KEPT_BLOCK: usize = (32 << 20) - (64 << 10);

/// What encoding and checking a message works with.
pub(crate) struct Workshop {
    pub(crate) plans: Plans,
    pub(crate) tree: Tree,
    pub(crate) padding: Padding,
    slabs: Pool<Vec<u8>>,
}

impl Workshop {
    /// Room for `slabs` outgoing messages at a time, taken from the system as they come to be needed.
    pub(crate) fn new(plans: usize, slabs: usize) -> Result<Self, PoolError> {
        Ok(Self {
            plans: Plans::new(plans),
            tree: Tree::default(),
            padding: Padding::default(),
            slabs: Pool::new(vec![Vec::new(); slabs])?,
        })
    }

    /// Takes the memory of messages of this geometry from the system before the first one comes.
    pub(crate) fn warm_up(&mut self, geometry: &Geometry) {
        // The buffers inside `raptorq` are allocated anew for each message. glibc returns blocks of megabytes to
        // the system until it has seen a larger one freed; other allocators do not mind.
        drop(std::hint::black_box(Vec::<u8>::with_capacity(LARGEST_KEPT_BLOCK)));
        self.plans.prepare(geometry.source_symbols);
        self.padding.grow(geometry.block_len());
        self.tree
            .leaves_mut(usize::from(geometry.symbols), geometry.depth);
        // Two: one message leaves while the next is encoded.
        let _warm = [self.slab(geometry), self.slab(geometry)];
    }

    /// A buffer for all chunks of a message, with old bytes in it. Never waits: with every slab under way it is
    /// a fresh one.
    pub(crate) fn slab(&self, geometry: &Geometry) -> Slab {
        let len = usize::from(geometry.symbols) * geometry.chunk_len();
        let memory = match self.slabs.try_acquire() {
            Some(lease) => Memory::Pooled(lease),
            None => Memory::Fresh(Vec::new()),
        };
        let mut slab = Slab { memory, len };
        let bytes = slab.memory_mut();
        if bytes.len() < len {
            bytes.resize(len, 0);
        }
        slab
    }
}

/// A buffer for chunks, which goes back to the workshop once the last chunk is gone.
pub(crate) struct Slab {
    memory: Memory,
    len: usize,
}

enum Memory {
    Pooled(Lease<Vec<u8>>),
    Fresh(Vec<u8>),
}

impl Slab {
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        let len = self.len;
        &mut self.memory_mut()[..len]
    }

    pub(crate) fn freeze(self) -> Bytes {
        let len = self.len;
        match self.memory {
            Memory::Pooled(lease) => Bytes::from_owner(lease).slice(..len),
            Memory::Fresh(bytes) => bytes.into(),
        }
    }

    fn memory_mut(&mut self) -> &mut Vec<u8> {
        match &mut self.memory {
            Memory::Pooled(lease) => lease,
            Memory::Fresh(bytes) => bytes,
        }
    }
}

/// A payload with zeros behind it.
#[derive(Debug, Default)]
pub(crate) struct Padding {
    /// The last payload, then zeros.
    memory: Vec<u8>,
    /// Bytes of it that may not be zero.
    dirty: usize,
}

impl Padding {
    /// `bytes` up to `len` with zeros; copied only if it is shorter.
    pub(crate) fn pad<'a>(&'a mut self, bytes: &'a [u8], len: usize) -> &'a [u8] {
        if bytes.len() >= len {
            return &bytes[..len];
        }
        self.grow(len);
        self.memory[..bytes.len()].copy_from_slice(bytes);
        if self.dirty > bytes.len() {
            self.memory[bytes.len()..self.dirty].fill(0);
        }
        self.dirty = bytes.len();
        &self.memory[..len]
    }

    fn grow(&mut self, len: usize) {
        if self.memory.len() < len {
            self.memory.resize(len, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Padding, Workshop};
    use crate::geometry::Geometry;
    use crate::limits::{ChunkSize, HEADER_LEN, Redundancy};

    fn geometry(len: usize) -> Geometry {
        let hops = |scaled: u32| u64::from(scaled) + 3;
        Geometry::derive(len, ChunkSize::IPV4, HEADER_LEN, Redundancy::DEFAULT, hops).unwrap()
    }

    #[test]
    fn slabs_are_used_again_and_never_waited_for() {
        let workshop = Workshop::new(1, 1).unwrap();
        let mut slab = workshop.slab(&geometry(50_000));
        slab.bytes_mut().fill(7);
        let start = slab.bytes_mut().as_ptr();
        let chunks = slab.freeze();
        let other = workshop.slab(&geometry(50_000)).freeze();
        assert_ne!(other.as_ptr(), start, "the first is still under way");
        drop(chunks);
        let again = workshop.slab(&geometry(1_000)).freeze();
        assert_eq!(again.as_ptr(), start);
        assert!(again.len() < other.len());
    }

    #[test]
    fn padding_is_zero_whatever_was_there_before() {
        let mut padding = Padding::default();
        for (len, padded) in [(5, 8), (3, 16), (15, 16), (1, 2), (0, 16)] {
            let bytes = vec![9; len];
            let block = padding.pad(&bytes, padded);
            assert_eq!((&block[..len], block.len()), (&bytes[..], padded));
            assert!(block[len..].iter().all(|&byte| byte == 0), "{len} of {padded}");
        }
    }
}
