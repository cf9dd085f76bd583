//! Writes the seeds of every fuzz target into `fuzz/corpus/`, where it finds what is there already and leaves it alone:
//!
//! ```sh
//! cargo run -p falconet-tests --example write_fuzz_seeds
//! ```

use std::path::Path;
use std::{fs, io};

use falconet_tests::fuzz_targets::TARGETS;

fn main() -> io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    for target in TARGETS {
        let folder = corpus.join(target.name);
        fs::create_dir_all(&folder)?;
        for (number, seed) in (target.seeds)().iter().enumerate() {
            fs::write(folder.join(format!("seed-{number:03}")), seed)?;
        }
    }
    Ok(())
}
