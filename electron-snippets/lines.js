'use strict';

/**
 * Cuts a byte stream into lines. A UTF-8 character may arrive in pieces, so nothing is decoded before its line is whole.
 * A line above the limit is reported with its beginning and thrown away, so memory stays bounded.
 */

const NEWLINE = 0x0a;
const HEAD = 256; // bytes kept of an oversized line: enough to read the id of an answer

class LineSplitter {
  /** @param {number} limit bytes of the longest line that is kept */
  constructor(limit) {
    this.limit = limit;
    this.parts = [];
    this.size = 0;
    this.oversized = false;
  }

  /**
   * @param {Buffer} chunk
   * @returns {{ bytes: Buffer, oversized: boolean }[]} the lines this chunk completes, without their newline
   */
  push(chunk) {
    const lines = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      this._keep(chunk.subarray(start, end));
      lines.push(this._take());
      start = end + 1;
    }
    this._keep(chunk.subarray(start));
    return lines;
  }

  _keep(piece) {
    if (this.oversized || piece.length === 0) return;
    this.parts.push(piece);
    this.size += piece.length;
    if (this.size <= this.limit) return;
    this.oversized = true;
    this.parts = [Buffer.concat(this.parts, Math.min(this.size, HEAD))];
  }

  _take() {
    const line = { bytes: Buffer.concat(this.parts), oversized: this.oversized };
    this.parts = [];
    this.size = 0;
    this.oversized = false;
    return line;
  }
}

module.exports = { LineSplitter };
