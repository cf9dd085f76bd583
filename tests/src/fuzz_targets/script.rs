//! Reading an input as a list of decisions.

/// The bytes of an input, read from the front. Past the end every byte is 0.
pub struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    /// Starts at the first byte.
    pub fn new(input: &'a [u8]) -> Self {
        Self(input)
    }

    /// Whether nothing is left.
    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let [byte] = self.array();
        byte
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let taken = self.0.len().min(N);
        let mut bytes = [0; N];
        bytes[..taken].copy_from_slice(&self.0[..taken]);
        self.0 = &self.0[taken..];
        bytes
    }

    /// A number of two bytes.
    pub fn number(&mut self) -> usize {
        usize::from(u16::from_le_bytes(self.array()))
    }

    /// A place in something of this length, which is not 0.
    pub fn place(&mut self, len: usize) -> usize {
        // One byte reaches all of short things: mutations then keep the rest of the script in step.
        if len <= 256 {
            usize::from(self.byte()) % len
        } else {
            self.number() % len
        }
    }

    /// As many bytes as there are, at most `max`.
    pub fn bytes(&mut self, max: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(self.0.len().min(max));
        self.0 = rest;
        taken
    }

    /// Everything that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        self.bytes(usize::MAX)
    }

    /// Alters up to seven bytes of `message`, which is not empty.
    pub fn patch(&mut self, message: &mut [u8]) {
        for _ in 0..self.byte() % 8 {
            let at = self.place(message.len());
            message[at] ^= self.byte();
        }
    }
}
