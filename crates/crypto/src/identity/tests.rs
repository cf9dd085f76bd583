use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use super::*;

mod edge_cases;

fn network(name: &str) -> NetworkId {
    NetworkId::from_name(name)
}

#[test]
fn signed_and_verified() {
    let secret = IdentitySecret::generate(&mut ChaCha20Rng::seed_from_u64(1));
    let fields: [&[u8]; 2] = [b"header", b"root"];
    let signature = secret.sign(Purpose::Chunk, &network("a"), &fields).unwrap();
    let verify = |purpose, network: &NetworkId, fields: &[&[u8]]| {
        secret.identity().verify(purpose, network, fields, &signature)
    };
    assert_eq!(verify(Purpose::Chunk, &network("a"), &fields), Ok(()));

    // Each part of the message is covered.
    assert_eq!(verify(Purpose::Record, &network("a"), &fields), Err(BadSignature));
    assert_eq!(verify(Purpose::Chunk, &network("b"), &fields), Err(BadSignature));
    assert_eq!(
        verify(Purpose::Chunk, &network("a"), &[b"header", b"rooT"]),
        Err(BadSignature)
    );
    assert_eq!(
        verify(Purpose::Chunk, &network("a"), &[b"header"]),
        Err(BadSignature)
    );
    let other = IdentitySecret::from_bytes([3; 32]).identity();
    assert_eq!(
        other.verify(Purpose::Chunk, &network("a"), &fields, &signature),
        Err(BadSignature)
    );
}

#[test]
fn every_bit_of_a_signature_counts() {
    let secret = IdentitySecret::from_bytes([1; 32]);
    let signature = secret.sign(Purpose::Chunk, &network("a"), &[]).unwrap();
    for bit in 0..SIGNATURE_LEN * 8 {
        let mut altered = signature.0;
        altered[bit / 8] ^= 1 << (bit % 8);
        let verified = secret
            .identity()
            .verify(Purpose::Chunk, &network("a"), &[], &Signature(altered));
        assert_eq!(verified, Err(BadSignature), "bit {bit}");
    }
}

#[test]
fn any_signer_will_do() {
    struct Remote(IdentitySecret);

    impl Signer for Remote {
        fn identity(&self) -> IdentityKey {
            self.0.identity()
        }

        fn sign(
            &self,
            purpose: Purpose,
            network: &NetworkId,
            fields: &[&[u8]],
        ) -> Result<Signature, SignError> {
            if purpose == Purpose::Record {
                return Err(SignError::Refused("records are signed by hand".into()));
            }
            self.0.sign(purpose, network, fields)
        }
    }

    let signer: Box<dyn Signer> = Box::new(Remote(IdentitySecret::from_bytes([1; 32])));
    let signature = signer.sign(Purpose::Chunk, &network("a"), &[b"x"]).unwrap();
    let verified = signer
        .identity()
        .verify(Purpose::Chunk, &network("a"), &[b"x"], &signature);
    assert_eq!(verified, Ok(()));
    assert!(matches!(
        signer.sign(Purpose::Record, &network("a"), &[b"x"]),
        Err(SignError::Refused(_))
    ));
}

/// RFC 8032, section 7.1, tests 1 to 3 and "SHA(abc)".
#[test]
fn rfc8032() {
    for (seed, public, message, signature) in [
        (
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "",
            concat!(
                "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555",
                "fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
            ),
        ),
        (
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            "72",
            concat!(
                "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da",
                "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
            ),
        ),
        (
            "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
            "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
            "af82",
            concat!(
                "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac",
                "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"
            ),
        ),
        (
            "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
            "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
            concat!(
                "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a",
                "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
            ),
            concat!(
                "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b589",
                "09351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704"
            ),
        ),
    ] {
        let mut bytes = [0; 32];
        hex::decode_to_slice(seed, &mut bytes).unwrap();
        let secret = IdentitySecret::from_bytes(bytes);
        let message = hex::decode(message).unwrap();
        assert_eq!(hex::encode(secret.identity().as_bytes()), public);
        let found = secret.key.sign(&message).to_bytes();
        assert_eq!(hex::encode(found), signature);
        assert_eq!(
            secret.identity().verify_bytes(&message, &Signature(found)),
            Ok(())
        );
    }
}
