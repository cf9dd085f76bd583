use std::time::Duration;

use super::*;

fn line(flags: &str) -> String {
    match parse(
        ["falconet"]
            .into_iter()
            .chain(flags.split_whitespace())
            .map(OsString::from),
    ) {
        Err(Refusal::Wrong(failure)) => failure.to_string(),
        other => panic!("{flags}: {other:?}"),
    }
}

fn cluster(flags: &str) -> ClusterArgs {
    match parse(
        ["falconet", "cluster"]
            .into_iter()
            .chain(flags.split_whitespace())
            .map(OsString::from),
    ) {
        Ok(Cli {
            command: Command::Cluster(args),
        }) => args,
        other => panic!("{flags}: {other:?}"),
    }
}

#[test]
fn sizes_take_decimal_and_binary_units_and_plain_bytes() {
    for (text, bytes) in [
        ("2MB", 2_000_000),
        ("64KiB", 65_536),
        ("64kib", 65_536),
        ("2000000", 2_000_000),
        ("1", 1),
        ("1B", 1),
        ("1.5kB", 1_500),
        ("0.5KiB", 512),
        ("3MiB", 3_145_728),
        ("3145728", 3_145_728),
    ] {
        assert_eq!(quantity::size(text), Ok(bytes), "{text}");
    }
    let wrong = [
        "0", "3145729", "3.1MiB", "4MB", "1.5", "0.3KiB", "-1", "+1", "", "MB", ".5MB", "5.MB", "1.2.3MB",
    ];
    for text in wrong.into_iter().chain([
        "2 MB",
        "2TB",
        "1e6",
        "99999999999999999999",
        "0x10",
        "２MB",
        "1.0000000000000000000MB",
    ]) {
        assert_eq!(quantity::size(text), Err(quantity::NotAllowed), "{text}");
    }
}

#[test]
fn rates_are_bits_per_second_or_unlimited() {
    for (text, bits) in [
        ("1Gbps", 1_000_000_000),
        ("250Mbps", 250_000_000),
        ("2.5gbps", 2_500_000_000),
        ("400Gbps", 400_000_000_000),
        ("1000kbps", 1_000_000),
    ] {
        assert_eq!(quantity::rate(text), Ok(RateLimit::BitsPerSecond(bits)), "{text}");
    }
    assert_eq!(quantity::rate("unlimited"), Ok(RateLimit::Unlimited));
    for text in [
        "",
        "0",
        "1000000000",
        "1GB",
        "1Gbit",
        "999kbps",
        "401Gbps",
        "infinite",
        "-1Gbps",
    ] {
        assert_eq!(quantity::rate(text), Err(quantity::NotAllowed), "{text}");
    }
}

#[test]
fn a_rate_is_shown_in_its_largest_unit() {
    for (bits, text) in [
        (1_000_000_000, "1Gbps"),
        (2_500_000_000, "2.5Gbps"),
        (250_000_000, "250Mbps"),
    ] {
        assert_eq!(RateLimit::BitsPerSecond(bits).to_string(), text);
    }
    assert_eq!(RateLimit::Unlimited.to_string(), "unlimited");
}

#[test]
fn intervals_need_a_unit() {
    for (text, ms) in [
        ("1s", 1_000),
        ("500ms", 500),
        ("1.5s", 1_500),
        ("2m", 120_000),
        ("1h", 3_600_000),
        ("2500us", 2),
    ] {
        assert_eq!(
            quantity::interval(text).map(|time| time.as_millis()),
            Ok(ms),
            "{text}"
        );
    }
    for text in ["", "1", "0s", "999us", "61m", "1 s", "-1s", "1d", "s"] {
        assert_eq!(quantity::interval(text), Err(quantity::NotAllowed), "{text}");
    }
}

#[test]
fn loss_is_a_plain_decimal_up_to_a_half() {
    for (text, share) in [("0", 0.0), ("0.1", 0.1), ("0.5", 0.5), (".25", 0.25)] {
        assert_eq!(quantity::loss(text), Ok(share), "{text}");
    }
    for text in ["", "0.51", "1", "-0.1", "nan", "inf", "1e-3", "10%", "0,1", "."] {
        assert_eq!(quantity::loss(text), Err(quantity::NotAllowed), "{text}");
    }
}

#[test]
fn every_end_of_a_range_is_allowed_and_its_neighbour_is_not() {
    for (flag, allowed, refused) in [
        ("nodes", ["2", "100"], ["1", "101"]),
        ("rounds", ["1", "1000000"], ["0", "1000001"]),
        ("interval", ["1ms", "1h"], ["0ms", "3601s"]),
        ("buckets", ["1", "100"], ["0", "101"]),
        ("bucket-ms", ["0", "1000"], ["-1", "1001"]),
        (
            "seed",
            ["0", "18446744073709551615"],
            ["-1", "18446744073709551616"],
        ),
        ("size", ["1", "3MiB"], ["0", "3145729"]),
    ] {
        for value in allowed {
            cluster(&format!("--{flag} {value}"));
        }
        for value in refused {
            let expected = format!(
                "--{flag} {value} is not allowed; allowed: {}",
                allowed::of(flag).unwrap()
            );
            assert_eq!(line(&format!("cluster --{flag} {value}")), expected);
        }
    }
}

#[test]
fn defaults_are_those_of_the_manual() {
    let args = cluster("");
    assert_eq!(
        (args.nodes, args.rounds, args.interval),
        (10, 10, Duration::from_secs(1))
    );
    assert_eq!(
        (args.lanes, args.suite, args.rate),
        (Lanes::Both, SuiteChoice::ChaCha, RateLimit::Unlimited)
    );
    assert_eq!(
        (args.bucket_ms, args.loss, args.payload, args.size),
        (0, 0.0, None, None)
    );
}

#[test]
fn each_flag_with_a_value_says_what_it_allows_in_help_and_error() {
    for subcommand in command().get_subcommands() {
        for arg in subcommand
            .get_arguments()
            .filter(|arg| arg.get_action().takes_values())
        {
            let flag = arg.get_long().unwrap();
            let allowed = allowed::of(flag).unwrap_or_else(|| panic!("--{flag} has no line"));
            assert!(arg.get_help().unwrap().to_string().contains(allowed), "--{flag}");
            let expected = format!("--{flag} needs a value; allowed: {allowed}");
            assert_eq!(line(&format!("{} --{flag}", subcommand.get_name())), expected);
        }
    }
}

#[test]
fn words_and_combinations_that_are_not_known_are_named() {
    assert_eq!(
        line("cluster --lanes wet"),
        "--lanes wet is not allowed; allowed: auth, plain, both or mixed"
    );
    assert_eq!(
        line("cluster --suite AES"),
        "--suite AES is not allowed; allowed: chacha or aes"
    );
    assert_eq!(
        line("cluster --node 3"),
        "flag --node is not known; did you mean --nodes?"
    );
    assert_eq!(
        line("cluster here"),
        "argument here is not known; --help lists what is allowed"
    );
    assert_eq!(
        line("cluster --nodes 3 --nodes 4"),
        "--nodes is given twice; allowed: once"
    );
    assert_eq!(line("keygen --disposable=yes"), "--disposable takes no value");
    assert_eq!(
        line("clutser"),
        "command clutser is not known; allowed: cluster, keygen, sim, help"
    );
    assert_eq!(
        line("cluster --payload a --size 1MB"),
        "--payload and --size exclude each other; allowed: one of them"
    );
}

#[test]
fn declarations_are_consistent() {
    command().debug_assert();
}
