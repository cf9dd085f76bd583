//! Scripts that reach every operation.

/// Broadcasts that arrive, are lost in part, replayed, altered, misattributed, late, and cross restarts and epochs.
pub fn seeds() -> Vec<Vec<u8>> {
    // Operations, for the first node.
    let (publish, deliver, pick, lose, duplicate, corrupt) = (0, 3, 9, 12, 15, 18);
    let (forge, wait, inject, disturb) = (21, 24, 27, 30);
    let mut seeds = Vec::new();
    for stakes in [[9, 9, 9], [0, 0, 255]] {
        for len in [[10, 0, 3], [0, 24, 5]] {
            let start = [&stakes[..], &[publish], &len].concat();
            let tails: [&[u8]; 11] = [
                &[deliver, 255, wait, 1, deliver, 255],
                &[deliver, 10, wait, 1, deliver, 10, wait, 120, deliver, 255],
                &[lose, 3, 0, 6, deliver, 255, wait, 1, deliver, 255],
                &[
                    duplicate, 0, 0, duplicate, 5, 0, pick, 0, 0, deliver, 255, wait, 1, deliver, 255,
                ],
                &[
                    corrupt, 0, 0, 1, 30, 1, corrupt, 1, 0, 1, 100, 1, deliver, 255, wait, 1, deliver, 255,
                ],
                &[
                    forge + 1,
                    0,
                    0,
                    forge + 2,
                    1,
                    0,
                    deliver,
                    255,
                    wait,
                    1,
                    deliver,
                    255,
                ],
                &[
                    publish + 1,
                    7,
                    3,
                    1,
                    publish + 2,
                    9,
                    9,
                    2,
                    deliver,
                    255,
                    wait,
                    1,
                    deliver,
                    255,
                ],
                &[deliver, 20, disturb + 1, 0, deliver, 255, wait, 1, deliver, 255],
                &[
                    disturb, 1, deliver, 255, publish, 9, 0, 1, disturb, 1, deliver, 255,
                ],
                &[
                    disturb + 1,
                    2,
                    3,
                    deliver,
                    255,
                    disturb + 2,
                    2,
                    0,
                    wait,
                    1,
                    deliver,
                    255,
                ],
                &[inject + 1, 0, 5, 0x10, 0, 0, 0, 1, wait, 50, deliver, 255],
            ];
            seeds.extend(tails.map(|tail| [&start[..], tail].concat()));
        }
    }
    seeds
}
