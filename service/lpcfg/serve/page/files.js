/**
 * Gives things to the reader: on the clipboard, or as a file.
 */

/** Put text on the clipboard. Throws an explanation if the browser does not allow it. */
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
