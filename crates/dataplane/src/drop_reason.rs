//! Why datagrams do not leave.

/// Why a datagram that was to be sent did not leave; the label is the metric label
/// (docs/spec/threads.md#drops).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DropReason {
    QueueFull,
    Expired,
    PeerRemoved,
    Shutdown,
    NoSocket,
    Unroutable,
    Empty,
    TooLong,
    SendRefused,
    BufferFull,
    HandshakeTimeout,
    Backlog,
    NotPermitted,
    Unreachable,
    Refused,
    SendError,
    EmulatedLoss,
    DelayLineFull,
}

impl DropReason {
    pub(crate) const ALL: [DropReason; 18] = [
        DropReason::QueueFull,
        DropReason::Expired,
        DropReason::PeerRemoved,
        DropReason::Shutdown,
        DropReason::NoSocket,
        DropReason::Unroutable,
        DropReason::Empty,
        DropReason::TooLong,
        DropReason::SendRefused,
        DropReason::BufferFull,
        DropReason::HandshakeTimeout,
        DropReason::Backlog,
        DropReason::NotPermitted,
        DropReason::Unreachable,
        DropReason::Refused,
        DropReason::SendError,
        DropReason::EmulatedLoss,
        DropReason::DelayLineFull,
    ];

    pub(crate) const fn label(self) -> &'static str {
        match self {
            DropReason::QueueFull => "queue_full",
            DropReason::Expired => "expired",
            DropReason::PeerRemoved => "peer_removed",
            DropReason::Shutdown => "shutdown",
            DropReason::NoSocket => "no_socket",
            DropReason::Unroutable => "unroutable",
            DropReason::Empty => "empty",
            DropReason::TooLong => "too_long",
            DropReason::SendRefused => "send_refused",
            DropReason::BufferFull => "buffer_full",
            DropReason::HandshakeTimeout => "handshake_timeout",
            DropReason::Backlog => "backlog",
            DropReason::NotPermitted => "not_permitted",
            DropReason::Unreachable => "unreachable",
            DropReason::Refused => "refused",
            DropReason::SendError => "send_error",
            DropReason::EmulatedLoss => "emulated_loss",
            DropReason::DelayLineFull => "delay_line_full",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_listed_in_their_order_and_named_once() {
        for (i, reason) in DropReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, i);
            let same = DropReason::ALL.iter().filter(|r| r.label() == reason.label());
            assert_eq!(same.count(), 1);
        }
    }
}
