use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use falconet_crypto::{IdentitySecret, Signer};
use falconet_transport::{Capabilities, LaneAddresses, RecordContent};
use tempfile::TempDir;

use super::memory::{MAX_PEERS, MAX_TIMESTAMPS};
use super::writer::{Stored, Writer};
use super::*;

fn identity(number: u8) -> IdentitySecret {
    IdentitySecret::from_bytes([number; 32])
}

fn network() -> NetworkId {
    NetworkId::from_name("state")
}

fn transport_key(number: u32) -> TransportPublicKey {
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    TransportPublicKey::from_bytes(bytes)
}

fn label(seconds: u64) -> Tai64N {
    Tai64N::from_unix(Duration::from_secs(seconds))
}

fn record(number: u8, sequence: u64, capabilities: Capabilities) -> PeerRecord {
    let signer = identity(number);
    let content = RecordContent {
        identity: signer.identity(),
        transport_key: transport_key(7),
        sequence,
        expiry_ms: u64::MAX,
        authenticated: LaneAddresses::default(),
        plain: LaneAddresses::default(),
        capabilities,
        suites: 1,
        max_datagram: 1_472,
        max_chunk: 1_440,
    };
    PeerRecord::sign(content, &network(), &signer).unwrap()
}

/// A memory in which everything is there.
fn full() -> Memory {
    let mut memory = Memory::new(identity(1).identity(), network());
    memory.mark = Some(label(1_000));
    memory.round = Some((Epoch::new(3), Round::from(9)));
    memory.record_sequence = Some(5);
    memory.raise_timestamps(&[(transport_key(2), label(50)), (transport_key(1), label(60))]);
    assert!(memory.note_session(identity(2).identity()));
    assert!(memory.note_record(&record(3, 8, Capabilities::AUTHENTICATED_LANE)));
    assert!(memory.note_configured(identity(4).identity(), 0, false));
    memory
}

fn decode(bytes: &[u8]) -> Result<Memory, StateFormatError> {
    format::decode(bytes, identity(1).identity(), network())
}

#[test]
fn what_was_encoded_is_decoded() {
    for memory in [full(), Memory::new(identity(1).identity(), network())] {
        assert_eq!(decode(&format::encode(&memory)), Ok(memory));
    }
}

#[test]
fn every_flipped_bit_and_every_cut_is_noticed() {
    let bytes = format::encode(&full());
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(decode(&flipped).is_err(), "bit {bit}");
    }
    for len in 0..bytes.len() {
        assert!(decode(&bytes[..len]).is_err(), "{len} bytes");
    }
    assert!(decode(&[&bytes[..], &[0]].concat()).is_err());
}

/// With a checksum that fits, as only a faulty program writes it.
fn sealed(mut content: Vec<u8>) -> Vec<u8> {
    let checksum = falconet_crypto::blake2s(&[&content]);
    content.extend(checksum);
    content
}

#[test]
fn other_encodings_of_the_same_and_absurd_counts_are_refused() {
    let bytes = format::encode(&full());
    let content = &bytes[..bytes.len() - 32];
    assert!(decode(&sealed(content.to_vec())).is_ok());
    let at_flags = 16 + 64;
    let at_timestamps = at_flags + 1 + 12 + 4 + 8 + 8;
    let altered = |alter: &dyn Fn(&mut Vec<u8>)| {
        let mut content = content.to_vec();
        alter(&mut content);
        decode(&sealed(content)).unwrap_err()
    };
    let not_canonical = StateFormatError::Malformed("not canonical");
    assert_eq!(
        altered(&|c| c[at_flags] |= 0x80),
        not_canonical,
        "an unknown flag"
    );
    assert_eq!(
        altered(&|c| c[at_flags] &= !1),
        not_canonical,
        "a mark that is none"
    );
    assert_eq!(altered(&|c| c.push(0)), not_canonical, "something behind the end");
    let swapped = altered(&|c| {
        let (first, second) = (at_timestamps + 4, at_timestamps + 4 + 44);
        c[first..second + 44].rotate_left(44);
    });
    assert_eq!(swapped, not_canonical, "another order");
    let absurd = altered(&|c| c[at_timestamps..][..4].copy_from_slice(&u32::MAX.to_le_bytes()));
    assert_eq!(
        absurd,
        StateFormatError::Malformed("more entries than there may be")
    );
    assert_eq!(altered(&|c| c[15] = b'2'), StateFormatError::Version);
    assert_eq!(altered(&|c| c[0] = b'x'), StateFormatError::NotAState);
}

#[test]
fn a_foreign_file_is_told_from_a_damaged_one() {
    let bytes = format::encode(&full());
    let foreign = format::decode(&bytes, identity(9).identity(), network()).unwrap_err();
    assert_eq!(foreign, StateFormatError::ForeignIdentity(identity(1).identity()));
    let elsewhere = format::decode(&bytes, identity(1).identity(), NetworkId::from_name("else")).unwrap_err();
    assert_eq!(elsewhere, StateFormatError::ForeignNetwork(network()));
}

#[test]
fn the_memory_is_bounded_and_the_longest_encoding_is_as_long_as_stated() {
    let mut memory = Memory::new(identity(1).identity(), network());
    let keys: Vec<_> = (0..MAX_TIMESTAMPS as u32 + 10)
        .map(|number| (transport_key(number), label(u64::from(number))))
        .collect();
    memory.raise_timestamps(&keys[..MAX_TIMESTAMPS]);
    // Newer ones take the place of the oldest.
    memory.raise_timestamps(&keys[MAX_TIMESTAMPS..]);
    assert_eq!(memory.timestamps.len(), MAX_TIMESTAMPS);
    assert!(!memory.timestamps.contains_key(&transport_key(9)));
    assert!(memory.timestamps.contains_key(&transport_key(10)));
    // What is lower changes nothing.
    memory.raise_timestamps(&[(transport_key(500), label(1))]);
    assert_eq!(memory.timestamps[&transport_key(500)], label(500));
    for number in 0..MAX_PEERS as u64 + 1 {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        let is_taken = memory.note_session(IdentityKey::from_bytes(bytes));
        assert_eq!(is_taken, number < MAX_PEERS as u64);
    }
    let bytes = format::encode(&memory);
    assert!(bytes.len() <= format::MAX_LEN);
    assert_eq!(decode(&bytes), Ok(memory));
}

#[test]
fn a_record_without_sessions_ends_stickiness_and_an_older_one_changes_nothing() {
    let mut memory = Memory::new(identity(1).identity(), network());
    let peer = identity(3).identity();
    memory.note_session(peer);
    memory.note_record(&record(3, 8, Capabilities::AUTHENTICATED_LANE));
    memory.note_record(&record(3, 7, Capabilities::default()));
    memory.note_configured(peer, 8, true);
    assert!(memory.peers[&peer].had_session);
    assert_eq!(memory.peers[&peer].sequence, Some(8));

    memory.note_record(&record(3, 9, Capabilities::default()));
    assert!(!memory.peers[&peer].had_session);

    memory.note_session(peer);
    memory.forget_session(&peer);
    assert!(!memory.peers[&peer].had_session);
}

fn open(folder: &TempDir) -> Result<State, StateError> {
    State::open(
        &folder.path().join("node.state"),
        identity(1).identity(),
        network(),
        "test-disk".to_owned(),
    )
}

#[test]
fn what_is_noted_is_there_in_the_next_run() {
    let folder = TempDir::new().unwrap();
    let state = open(&folder).unwrap();
    let handle = state.handle().unwrap();
    handle.store_round(Epoch::new(2), Round::from(7)).unwrap();
    handle.store_record_sequence(4).unwrap();
    handle.note_session(identity(2).identity());
    handle.store_timestamps(vec![(transport_key(5), label(70))]);
    drop(handle);
    drop(state);

    let state = open(&folder).unwrap();
    let memory = state.loaded();
    assert_eq!(memory.round, Some((Epoch::new(2), Round::from(7))));
    assert_eq!(memory.record_sequence, Some(4));
    assert!(memory.peers[&identity(2).identity()].had_session);
    assert_eq!(
        state.handle().unwrap().greatest(&transport_key(5)),
        Some(label(70))
    );
}

#[cfg(unix)]
#[test]
fn the_file_is_its_owners_alone_and_nothing_else_stays_but_the_lock() {
    use std::os::unix::fs::PermissionsExt;

    let folder = TempDir::new().unwrap();
    // What a crash has left behind, for all to read.
    let leftover = folder.path().join(".node.state.tmp");
    std::fs::write(&leftover, b"half").unwrap();
    drop(open(&folder).unwrap());
    let mode = std::fs::metadata(folder.path().join("node.state"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut names: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, [".node.state.lock", "node.state"]);
}

#[test]
fn a_file_that_cannot_be_used_is_named_and_stays_as_it_is() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("node.state");
    let damaged = {
        let mut bytes = format::encode(&full());
        bytes.truncate(100);
        bytes
    };
    for content in [
        b"something else".to_vec(),
        Vec::new(),
        damaged,
        vec![0; format::MAX_LEN + 1],
    ] {
        std::fs::write(&path, &content).unwrap();
        let error = open(&folder).err().unwrap();
        assert!(error.to_string().contains("node.state"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), content, "{error}");
    }
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(matches!(
        open(&folder).err().unwrap().problem,
        StateProblem::NotAFile
    ));
}

/// Replacing would put a file in the link's place, and the target would come back as an older state.
#[cfg(unix)]
#[test]
fn a_link_is_refused() {
    let folder = TempDir::new().unwrap();
    let target = folder.path().join("elsewhere");
    std::fs::write(&target, format::encode(&full())).unwrap();
    std::os::unix::fs::symlink(&target, folder.path().join("node.state")).unwrap();
    assert!(matches!(
        open(&folder).err().unwrap().problem,
        StateProblem::NotAFile
    ));
}

#[test]
fn a_second_node_is_refused_while_the_first_runs() {
    let folder = TempDir::new().unwrap();
    let first = open(&folder).unwrap();
    assert!(matches!(
        open(&folder).err().unwrap().problem,
        StateProblem::InUse
    ));
    drop(first);
    assert!(open(&folder).is_ok());
}

/// A disk that can be broken, and shows what was written to it.
#[derive(Clone, Default)]
struct Disk {
    broken: Arc<AtomicBool>,
    written: Arc<Mutex<Vec<Memory>>>,
}

impl file::Storage for Disk {
    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.push(decode(bytes).unwrap());
        Ok(())
    }
}

fn writer(disk: &Disk) -> (Sender<Change>, Arc<Counts>, JoinHandle<()>) {
    let (changes, queue) = bounded(CHANGES);
    let counts = Arc::new(Counts::default());
    let memory = Memory::new(identity(1).identity(), network());
    let writer = Writer::new(memory, disk.clone(), queue, Arc::clone(&counts));
    (changes, counts, std::thread::spawn(move || writer.run()))
}

fn round(number: u32, changes: &Sender<Change>) -> io::Result<()> {
    let (stored, outcome): (Stored, _) = bounded(1);
    changes
        .send(Change::Round(Epoch::new(1), Round::from(number), stored))
        .unwrap();
    outcome.recv().unwrap()
}

#[test]
fn a_disk_that_fails_is_told_to_who_waits_counted_and_tried_again() {
    let disk = Disk::default();
    let (changes, counts, thread) = writer(&disk);
    round(1, &changes).unwrap();
    disk.broken.store(true, Ordering::Relaxed);
    assert_eq!(round(2, &changes).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert!(counts.failures.load(Ordering::Relaxed) >= 1);
    disk.broken.store(false, Ordering::Relaxed);
    // Nobody asks, and yet it is stored some time later.
    let start = Instant::now();
    while counts.writes.load(Ordering::Relaxed) < 2 {
        assert!(start.elapsed() < Duration::from_secs(60), "never tried again");
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(changes);
    thread.join().unwrap();
    let written = disk.written.lock().unwrap();
    assert_eq!(
        written.last().unwrap().round,
        Some((Epoch::new(1), Round::from(2)))
    );
}

#[test]
fn what_nobody_waits_for_shares_a_write() {
    let disk = Disk::default();
    let (changes, counts, thread) = writer(&disk);
    for number in 0..100 {
        let peer = identity(number).identity();
        changes.send(Change::Session(peer)).unwrap();
    }
    drop(changes);
    thread.join().unwrap();
    assert_eq!(counts.writes.load(Ordering::Relaxed), 1);
    assert_eq!(disk.written.lock().unwrap()[0].peers.len(), 100);
}
