"""The same sessions on a server, ``toolyard serve``, over HTTP. Functions of this program are no tools there."""
