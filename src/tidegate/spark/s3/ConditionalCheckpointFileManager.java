package org.tidegate.spark;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager;

/**
 * Writes the logs of a streaming query to S3: an entry is one put, which depends on there being none.
 *
 * Spark's writers cannot do this. The default one renames, which S3A does by a copy. The one of
 * spark-hadoop-cloud looks first and puts later, and takes a failed put for a success.
 */
public class ConditionalCheckpointFileManager extends FileSystemBasedCheckpointFileManager {
  public ConditionalCheckpointFileManager(Path path, Configuration conf) {
    super(path, conf);
  }

  @Override
  public CheckpointFileManager.CancellableFSDataOutputStream createAtomic(
      Path path, boolean overwriteIfPossible) {
    return new Entry(this.fs(), path, overwriteIfPossible, new ByteArrayOutputStream());
  }

  /** One file, kept in memory until it is closed: entries of logs are small. */
  private static class Entry extends CheckpointFileManager.CancellableFSDataOutputStream {
    private final FileSystem fs;
    private final Path path;
    private final boolean overwrite;
    private final ByteArrayOutputStream content;
    private boolean done = false;

    Entry(FileSystem fs, Path path, boolean overwrite, ByteArrayOutputStream content) {
      super(content);
      this.fs = fs;
      this.path = path;
      this.overwrite = overwrite;
      this.content = content;
    }

    @Override
    public void cancel() {
      this.done = true;
    }

    @Override
    public void close() throws IOException {
      if (this.done) {
        return;
      }
      this.done = true;
      try {
        this.put();
      } catch (IOException error) {
        if (this.overwrite || !this.fs.exists(this.path)) {
          throw error;
        }
        // Of a put whose answer was lost, the second try finds the object of the first.
        if (!this.isThere()) {
          throw new FileAlreadyExistsException(this.path + " was written by another driver");
        }
      }
    }

    private void put() throws IOException {
      FSDataOutputStreamBuilder builder = this.fs.createFile(this.path);
      builder.overwrite(true);
      if (!this.overwrite) {
        builder.must("fs.option.create.conditional.overwrite", true);
      }
      FSDataOutputStream stream = (FSDataOutputStream) builder.build();
      stream.write(this.content.toByteArray());
      stream.close();
    }

    private boolean isThere() throws IOException {
      byte[] mine = this.content.toByteArray();
      if (this.fs.getFileStatus(this.path).getLen() != mine.length) {
        return false;
      }
      byte[] found = new byte[mine.length];
      FSDataInputStream stream = this.fs.open(this.path);
      try {
        stream.readFully(0L, found);
      } finally {
        stream.close();
      }
      return java.util.Arrays.equals(found, mine);
    }
  }
}
