// The embedded data: base64 of deflate, in script elements that the browser never runs.

const CHUNKS_HELD = 24;

const Store = {
  data: null,
  chunks: new Map(),

  async open() {
    if (typeof DecompressionStream === "undefined") {
      throw new Error("This browser cannot unpack the report. Any browser from 2023 on can.");
    }
    this.data = JSON.parse(decode(await inflate("head")));
    return this.data;
  },

  has(digest) {
    return Boolean(digest && Object.hasOwn(this.data.texts, digest));
  },

  // The text of a digest, or null where the report has none.
  async text(digest) {
    if (!this.has(digest)) return null;
    const [number, start, length] = this.data.texts[digest];
    const content = await this.chunk(number);
    return decode(content.subarray(start, start + length));
  },

  chunk(number) {
    let found = this.chunks.get(number);
    if (found) this.chunks.delete(number);
    else found = inflate(`chunk-${number}`);
    this.chunks.set(number, found);
    if (this.chunks.size > CHUNKS_HELD) this.chunks.delete(this.chunks.keys().next().value);
    return found;
  },
};

function decode(data) {
  return new TextDecoder().decode(data);
}

async function inflate(id) {
  const packed = atob(document.getElementById(id).textContent);
  const data = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) data[i] = packed.charCodeAt(i);
  const stream = new Blob([data]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
