//! A resource that goes back by itself.

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::pool::Pool;

/// A resource of a [`Pool`], which goes back when this is dropped.
pub struct Lease<T> {
    pool: Pool<T>,
    /// The resource's own generation, not the pool's at the time of return.
    generation: u64,
    /// `None` only while it is being dropped.
    resource: Option<T>,
}

impl<T> Lease<T> {
    pub(crate) fn new(pool: Pool<T>, generation: u64, resource: T) -> Self {
        Self {
            pool,
            generation,
            resource: Some(resource),
        }
    }

    /// The generation of the resource: how many refreshes came before it.
    pub const fn generation(&self) -> u64 {
        self.generation
    }
}

impl<T> Deref for Lease<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.resource.as_ref().expect("the resource is there until drop")
    }
}

impl<T> DerefMut for Lease<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.resource.as_mut().expect("the resource is there until drop")
    }
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for Lease<T> {
    fn as_ref(&self) -> &[u8] {
        (**self).as_ref()
    }
}

impl<T: fmt::Debug> fmt::Debug for Lease<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("generation", &self.generation)
            .field("resource", &self.resource)
            .finish()
    }
}

impl<T> Drop for Lease<T> {
    fn drop(&mut self) {
        if let Some(resource) = self.resource.take() {
            self.pool
                .shared
                .give_back(self.generation, resource, std::thread::panicking());
        }
    }
}
