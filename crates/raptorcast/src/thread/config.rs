//! The options of the raptorcast thread.

/// Name and queues of the thread.
#[derive(Clone, Debug)]
pub struct ThreadConfig {
    pub(super) name: String,
    pub(super) batch_slots: usize,
    pub(super) chunk_slots: usize,
    pub(super) command_slots: usize,
    pub(super) warm_up: Option<usize>,
}

impl ThreadConfig {
    /// A thread of this name (Linux shows 15 bytes of it), with the default queues.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            batch_slots: 256,
            chunk_slots: 16_384,
            command_slots: 64,
            warm_up: None,
        }
    }

    /// Chunk batches that may wait; default 256. Past them whole batches are dropped and counted.
    #[must_use]
    pub const fn with_batch_slots(mut self, batch_slots: usize) -> Self {
        self.batch_slots = batch_slots;
        self
    }

    /// Chunks that may wait, whatever the batches they came in; default 16,384, what a link of 1 Gbit/s carries in 200 ms.
    /// Past them whole batches are dropped and counted.
    #[must_use]
    pub const fn with_chunk_slots(mut self, chunk_slots: usize) -> Self {
        self.chunk_slots = chunk_slots;
        self
    }

    /// Bytes of a usual payload, to be ready for when the thread starts and when it learns an epoch; default none. See
    /// [`Engine::warm_up`](crate::Engine::warm_up) for what that costs.
    #[must_use]
    pub const fn with_warm_up(mut self, payload_len: usize) -> Self {
        self.warm_up = Some(payload_len);
        self
    }

    /// Commands that may wait; default 64. Past them a command is refused.
    #[must_use]
    pub const fn with_command_slots(mut self, command_slots: usize) -> Self {
        self.command_slots = command_slots;
        self
    }
}
