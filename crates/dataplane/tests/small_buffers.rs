//! A system that grants less than the buffers asked for is warned of, and works. Alone in its process, which warns once.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod nodes;

use std::fmt::Debug;
use std::sync::Mutex;

use falconet_dataplane::Class;
use falconet_transport::Policy;
use nodes::*;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps the messages of warnings.
struct Warnings;

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        WARNINGS.lock().unwrap().push(message.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn one_warning_names_the_sysctl_and_traffic_passes() {
    tracing::subscriber::set_global_default(Warnings).unwrap();
    // One byte more than the kernel can grant to anybody.
    let greedy = || config().with_socket_buffer(i32::MAX as usize);
    let (a, b) = (start(1, greedy()), start(2, greedy()));
    a.knows(&b, Policy::Require);
    b.knows(&a, Policy::Require);
    a.send(numbered(0x11, 50, 1_200), Class::Relay);
    b.receive(50);
    let warnings = WARNINGS.lock().unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("net.core.rmem_max"), "{warnings:?}");
}
