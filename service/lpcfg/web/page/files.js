/**
 * Handing things to the reader: to the clipboard, or as a file.
 */

/** Put text on the clipboard. Throws in words where the browser does not let pages do so. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch (error) {
    throw new Error("This browser lets no page copy here. Save the file instead.", {
      cause: error,
    });
  }
}

/** Offer content as a file to save. */
export function save(content, name, type) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
