use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use super::*;
use crate::backend::tests::low_order_points;

#[test]
fn both_sides_agree() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let (a, b) = (
        TransportSecret::generate(&mut rng),
        TransportSecret::generate(&mut rng),
    );
    assert_ne!(a.public(), b.public());
    assert_eq!(a.diffie_hellman(&b.public()), b.diffie_hellman(&a.public()));
}

#[test]
fn low_order_points_are_refused() {
    let secret = TransportSecret::from_bytes([9; KEY_LEN]);
    for point in low_order_points() {
        let point = TransportPublicKey::from_bytes(point);
        assert_eq!(secret.diffie_hellman(&point), Err(LowOrderPoint));
    }
}

#[test]
fn generation_is_a_function_of_the_generator() {
    let generate = || TransportSecret::generate(&mut ChaCha20Rng::seed_from_u64(2)).public();
    assert_eq!(generate(), generate());
}
