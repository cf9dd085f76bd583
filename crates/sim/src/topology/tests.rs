use super::*;

const MATRIX: &str = "# three towns\nregion,a,b,c\na,0,10,20.5\nb,10,0,30\n\nc,20,30,0\n";

#[test]
fn a_bucket_away_is_a_step_away() {
    let topology = Topology::buckets(100, 10, Duration::from_millis(20));
    assert_eq!(topology.site(0), 0);
    assert_eq!(topology.site(99), 9);
    assert_eq!(topology.delay(0, 99), Duration::from_millis(180));
    assert_eq!(topology.delay(99, 0), Duration::from_millis(180));
    assert_eq!(topology.delay(11, 12), Duration::ZERO);
    assert_eq!((0..100).filter(|&node| topology.site(node) == 3).count(), 10);
}

#[test]
fn a_matrix_is_read_with_half_its_round_trips() {
    let topology = Topology::from_csv(MATRIX, 6).unwrap();
    assert_eq!(topology.sites(), ["a", "b", "c"]);
    assert_eq!(topology.delay(0, 2), Duration::from_millis(5));
    assert_eq!(topology.delay(1, 5), Duration::from_micros(10_250));
    assert_eq!(topology.longest(), Duration::from_millis(15));
}

#[test]
fn the_matrix_that_ships_has_ten_regions() {
    let topology = Topology::regions(100).unwrap();
    assert_eq!(topology.sites().len(), 10);
    assert_eq!(topology.site(0), 0);
    assert_eq!(topology.longest(), Duration::from_millis(164));
}

#[test]
fn fewer_nodes_than_sites_leave_sites_empty() {
    let topology = Topology::regions(3).unwrap();
    assert_eq!([0, 1, 2].map(|node| topology.site(node)), [0, 1, 2]);
}

#[test]
fn what_is_wrong_with_a_matrix_is_said_with_its_line() {
    let cases = [
        ("", "empty"),
        ("# only a comment\n", "empty"),
        ("region\n", "empty"),
        ("region,a,b\na,0,1\n", "1 rows for 2 names"),
        ("region,a,b\na,0\nb,1,0\n", "line 2 has 1 values, expected 2"),
        (
            "region,a,b\nb,0,1\na,1,0\n",
            "line 2 is for \"b\", expected \"a\"",
        ),
        ("region,a\na,0\na,0\n", "line 3"),
        ("region,a\na,-1\n", "line 2: \"-1\" is not a round trip"),
        ("region,a\na,NaN\n", "\"NaN\""),
        ("region,a\na,1e9\n", "\"1e9\""),
        ("region,a\na,\n", "\"\""),
    ];
    for (text, expected) in cases {
        let error = Topology::from_csv(text, 4).unwrap_err().to_string();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
    let wide = format!("region,{}\n", ["x"; MAX_SITES + 1].join(","));
    assert_eq!(
        Topology::from_csv(&wide, 4),
        Err(TopologyError::TooManySites(MAX_SITES + 1))
    );
}
