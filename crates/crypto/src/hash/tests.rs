use super::*;

#[test]
fn rfc7693_abc() {
    assert_eq!(
        hex::encode(blake2s(&[b"abc"])),
        "508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982"
    );
}
