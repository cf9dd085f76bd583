//! Cookies on both sides: what proves an address, for how long, and to whom.

use super::*;
use falconet_crypto::Now;
use std::net::SocketAddr;
use std::time::Instant;

fn start() -> Now {
    Now {
        instant: Instant::now(),
        unix: Duration::from_secs(1_700_000_000),
    }
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn parsed_reply(datagram: &[u8]) -> CookieReply {
    match Message::parse(datagram).unwrap() {
        Message::CookieReply(reply) => reply,
        other => panic!("not a cookie reply: {other:?}"),
    }
}

/// A cookie that Bob's `jar` gave to Alice at `from`.
fn cookie_from(world: &mut World, jar: &CookieJar, from: SocketAddr) -> Cookie {
    let (pending, initiation) = world.initiate(Suite::ChaCha20Poly1305, None);
    let checked = checked_initiation(&initiation, &world.bob).unwrap();
    assert!(!jar.mac2_valid(&checked, from));
    let reply = jar.reply(&world.bob, &checked, from, &mut world.rng);
    pending
        .open_cookie_reply(&world.to_bob, &parsed_reply(&reply))
        .unwrap()
}

fn mac2_valid(world: &mut World, jar: &CookieJar, cookie: &Cookie, from: SocketAddr) -> bool {
    let (_, initiation) = world.initiate(Suite::Aes256Gcm, Some(cookie));
    jar.mac2_valid(&checked_initiation(&initiation, &world.bob).unwrap(), from)
}

#[test]
fn a_cookie_proves_exactly_one_address_and_port() {
    let mut world = world();
    let jar = CookieJar::new(start(), &mut world.rng);
    for (from, others) in [
        ("192.0.2.1:7", ["192.0.2.1:8", "192.0.2.2:7", "[2001:db8::1]:7"]),
        (
            "[2001:db8::1]:7",
            ["[2001:db8::1]:8", "[2001:db8::2]:7", "192.0.2.1:7"],
        ),
    ] {
        let cookie = cookie_from(&mut world, &jar, address(from));
        assert!(mac2_valid(&mut world, &jar, &cookie, address(from)));
        for other in others {
            assert!(
                !mac2_valid(&mut world, &jar, &cookie, address(other)),
                "{from} proved {other}"
            );
        }
    }
}

/// A dual-stack socket reports IPv4 sources as mapped addresses.
#[test]
fn a_mapped_ipv4_address_is_the_ipv4_address() {
    let mut world = world();
    let jar = CookieJar::new(start(), &mut world.rng);
    let cookie = cookie_from(&mut world, &jar, address("[::ffff:192.0.2.1]:7"));
    assert!(mac2_valid(&mut world, &jar, &cookie, address("192.0.2.1:7")));
}

#[test]
fn a_cookie_lives_through_one_rotation_and_not_two() {
    let mut world = world();
    let from = address("192.0.2.1:7");
    let mut jar = CookieJar::new(start(), &mut world.rng);
    let begin = start();
    let mut rng = ChaCha20Rng::seed_from_u64(8);
    let cookie = cookie_from(&mut world, &jar, from);
    for (seconds, valid) in [(0, true), (119, true), (121, true), (239, true), (242, false)] {
        jar.rotate(begin.after(Duration::from_secs(seconds)), &mut rng);
        assert_eq!(
            mac2_valid(&mut world, &jar, &cookie, from),
            valid,
            "after {seconds} s"
        );
    }
}

/// A node that slept does not honour cookies from before its sleep.
#[test]
fn a_late_rotation_retires_both_secrets() {
    let mut world = world();
    let from = address("192.0.2.1:7");
    let mut jar = CookieJar::new(start(), &mut world.rng);
    let cookie = cookie_from(&mut world, &jar, from);
    jar.rotate(
        start().after(2 * COOKIE_LIFETIME),
        &mut ChaCha20Rng::seed_from_u64(8),
    );
    assert!(!mac2_valid(&mut world, &jar, &cookie, from));
}

#[test]
fn a_reply_opens_only_for_the_message_it_answers() {
    let mut world = world();
    let jar = CookieJar::new(start(), &mut world.rng);
    let (pending, initiation) = world.initiate(Suite::ChaCha20Poly1305, None);
    let (other, _) = world.initiate(Suite::ChaCha20Poly1305, None);
    let checked = checked_initiation(&initiation, &world.bob).unwrap();
    let reply = jar.reply(&world.bob, &checked, address("192.0.2.1:7"), &mut world.rng);
    let parsed = parsed_reply(&reply);
    assert_eq!(parsed.receiver(), ALICES_INDEX);
    assert_eq!(
        other.open_cookie_reply(&world.to_bob, &parsed).unwrap_err(),
        Discard::BadCookie
    );

    let carol = TransportSecret::from_bytes([0xc0; 32]).public();
    let to_carol = PeerStatic::new(&world.alice, carol, None).unwrap();
    assert_eq!(
        pending.open_cookie_reply(&to_carol, &parsed).unwrap_err(),
        Discard::BadCookie
    );
    for bit in 8 * 8..COOKIE_REPLY_LEN * 8 {
        let mut altered = reply;
        altered[bit / 8] ^= 1 << (bit % 8);
        let error = pending
            .open_cookie_reply(&world.to_bob, &parsed_reply(&altered))
            .unwrap_err();
        assert_eq!(error, Discard::BadCookie, "bit {bit}");
    }
    let mut other_index = reply;
    other_index[4] ^= 1;
    let error = pending
        .open_cookie_reply(&world.to_bob, &parsed_reply(&other_index))
        .unwrap_err();
    assert_eq!(error, Discard::WrongIndex);
    assert!(pending.open_cookie_reply(&world.to_bob, &parsed).is_ok());
}

/// An initiator under load asks for a cookie too: the responder answers with its next response.
#[test]
fn a_response_carries_the_initiators_cookie() {
    let mut world = world();
    let from = address("[2001:db8::b0b]:51820");
    let alices_jar = CookieJar::new(start(), &mut world.rng);
    let (_, initiation) = world.initiate(Suite::ChaCha20Poly1305, None);
    let (_, mut response) = world.respond(&initiation).unwrap();
    let checked = checked_response(&response, &world.alice).unwrap();
    assert!(!checked.has_mac2() && !alices_jar.mac2_valid(&checked, from));
    let reply = alices_jar.reply(&world.alice, &checked, from, &mut world.rng);
    let cookie = parsed_reply(&reply)
        .open(&world.to_alice, &Mac1::of_response(&response))
        .unwrap();

    cookie.stamp_response(&mut response);
    let checked = checked_response(&response, &world.alice).unwrap();
    assert!(checked.has_mac2() && alices_jar.mac2_valid(&checked, from));
}

#[test]
fn a_cookie_reply_is_shorter_than_what_it_answers() {
    const { assert!(COOKIE_REPLY_LEN < RESPONSE_LEN && COOKIE_REPLY_LEN < INITIATION_LEN) };
}

#[test]
fn debug_shows_no_cookie() {
    let mut world = world();
    let jar = CookieJar::new(start(), &mut world.rng);
    let cookie = cookie_from(&mut world, &jar, address("192.0.2.1:7"));
    assert_eq!(format!("{cookie:?}"), "Cookie(..)");
    assert!(!format!("{jar:?}").contains("current"));
}
