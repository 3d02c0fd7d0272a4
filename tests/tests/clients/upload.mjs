// Uploads FILE to ENDPOINT with tus-js-client, in requests of 1 MB; it tries again after an interruption. Prints the
// number of interruptions and the address of the upload.
import { createReadStream, statSync } from "node:fs";
import { basename } from "node:path";
import { DetailedError, Upload } from "tus-js-client";

const [file, endpoint] = process.argv.slice(2);
let interruptions = 0;
const upload = new Upload(createReadStream(file), {
  endpoint,
  chunkSize: 1_000_000,
  uploadSize: statSync(file).size,
  metadata: { filename: basename(file) },
  retryDelays: Array(20).fill(200),
  onShouldRetry: (error) => {
    interruptions += error instanceof DetailedError ? 1 : 0;
    return true;
  },
  onError: (error) => {
    console.error(error.message);
    process.exit(1);
  },
  onSuccess: () => console.log(JSON.stringify({ interruptions, url: upload.url })),
});
upload.start();
